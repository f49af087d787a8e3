package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/explain"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// pod returns a running pod of revision web-1, changed by a function.
func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-3", Namespace: "default",
			Labels: map[string]string{"app": "web", kruise.PodRevisionLabelKey: "web-1"},
		},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Ready: true, Image: "app:1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		},
	}
	for _, do := range change {
		do(p)
	}
	return p
}

// notReady closes the pod's condition Ready.
func notReady(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func TestNotReady(t *testing.T) {
	for name, row := range map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"a ready pod has no reason": {pod(), nil},
		"a container that cannot pull its image": {pod(notReady, func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Ready = false
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"},
			}
		}), []string{"container app waits: ImagePullBackOff no such image"}},
		"a probe that fails, after restarts": {pod(notReady, func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Ready, p.Status.ContainerStatuses[0].RestartCount = false, 2
		}), []string{"container app runs, its readiness probe fails (2 restarts)"}},
		"a pod that no node takes": {pod(notReady, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = nil
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes",
			})
		}), []string{"not scheduled: Unschedulable: 0/3 nodes"}},
		"a gate that two writers hold": {pod(notReady, func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}}
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: kruise.KruisePodReadyConditionType, Status: corev1.ConditionFalse,
				Message: `[{"userAgent":"Lifecycle","key":"preDeleteHook"},{"userAgent":"x","key":"y"}]`,
			})
		}), []string{"readiness gate KruisePodReady is held by Lifecycle/preDeleteHook, x/y"}},
		"a gate of another controller": {pod(notReady, func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}}
		}), []string{"readiness gate example.com/lb has no condition: is its controller installed?"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, explain.NotReady(row.pod)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNotUpdated(t *testing.T) {
	template := func(change func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
		to := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}}
		to.Labels = map[string]string{"app": "web"}
		change(to)
		return to
	}
	image := template(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "app:2" })
	command := template(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Command = []string{"run"} })
	hook := &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}}}
	const restarts = "the update is made in place and restarts app"
	for name, row := range map[string]struct {
		strategy kinds.Strategy
		pod      *corev1.Pod
		want     []string
	}{
		"an updated pod has no reason": {
			strategy: kinds.Strategy{UpdateRevision: "web-1", Template: image}, pod: pod(),
		},
		"a paused rollout": {
			strategy: kinds.Strategy{Policy: kinds.InPlaceIfPossible, Paused: true, Template: image},
			want:     []string{"the rollout is paused: kubectl kruise rollout resume", restarts},
		},
		"a partition of a set without ordinals": {
			strategy: kinds.Strategy{
				Policy: kinds.InPlaceIfPossible, Partition: ptr.To(intstr.FromString("50%")), Replicas: 4, Updated: 2,
				Template: image,
			},
			want: []string{"partition 50% keeps 2 of 4 pods at the older revision", restarts},
		},
		"a partition of ordinals": {
			strategy: kinds.Strategy{
				Policy: kinds.Recreate, Partition: ptr.To(intstr.FromInt32(4)), Ordinals: true, Replicas: 9, Template: image,
			},
			want: []string{
				"partition 4 keeps ordinal 3 at the older revision", "the update recreates the pod, as its policy says",
			},
		},
		"a limit of unavailable pods": {
			strategy: kinds.Strategy{
				Policy: kinds.InPlaceIfPossible, MaxUnavailable: ptr.To(intstr.FromInt32(1)), Template: command,
			},
			want: []string{
				"waits until other pods are updated and available: maxUnavailable is 1",
				"the update recreates the pod because of spec.containers[app].command",
			},
		},
		"a change that the policy forbids": {
			strategy: kinds.Strategy{Policy: kinds.InPlaceOnly, OnDelete: true, Template: command},
			want: []string{
				"the update strategy is OnDelete: the pod is updated when it is deleted",
				"the update cannot be made in place, and the policy forbids another: spec.containers[app].command",
			},
		},
		"a hook before the update": {
			strategy: kinds.Strategy{Policy: kinds.InPlaceIfPossible, Lifecycle: hook, Template: image},
			pod: pod(func(p *corev1.Pod) {
				p.Labels["hold"], p.Labels[kruise.LifecycleStateKey] = "yes", string(kruise.LifecycleStatePreparingUpdate)
			}),
			want: []string{"hook inPlaceUpdate holds the pod before its update: remove label hold=yes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if row.strategy.UpdateRevision == "" {
				row.strategy.UpdateRevision = "web-2"
			}
			if row.pod == nil {
				row.pod = pod()
			}
			if diff := cmp.Diff(row.want, explain.NotUpdated(row.strategy, row.pod)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEviction(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	budget := func(allowed int64) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
			"metadata": map[string]any{"name": "b", "namespace": "default", "generation": int64(1)},
			"spec": map[string]any{"maxUnavailable": int64(1), "targetRef": map[string]any{
				"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web",
			}},
			"status": map[string]any{
				"observedGeneration": int64(1), "unavailableAllowed": allowed, "currentAvailable": int64(3),
				"desiredAvailable": int64(2), "totalReplicas": int64(3),
			},
		}}
	}
	owner := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
	}}
	owner.SetName("web")
	owner.SetLabels(map[string]string{kruise.DeletionProtectionKey: "Always"})
	disruption := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
	disruption.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for name, row := range map[string]struct {
		allowed int64
		want    string
	}{
		"a budget with room":    {1, "1 more may be unavailable, an eviction now is admitted: Spent"},
		"a budget without room": {0, "0 more may be unavailable, an eviction now is refused: Exhausted"},
	} {
		t.Run(name, func(t *testing.T) {
			got := explain.Eviction(explain.Input{
				Pod: pod(), Owners: []*unstructured.Unstructured{owner},
				Budgets:           []unstructured.Unstructured{budget(row.allowed)},
				DisruptionBudgets: []policyv1.PodDisruptionBudget{disruption},
			}, now)
			if len(got) != 3 || !strings.HasPrefix(got[0], "PodUnavailableBudget b: "+row.want) {
				t.Fatalf("%q, want %q first of 3", got, row.want)
			}
			want := []string{
				"PodDisruptionBudget d: 0 disruptions allowed", "CloneSet web is protected from deletion: Always",
			}
			if diff := cmp.Diff(want, got[1:]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSidecars(t *testing.T) {
	set := func(name string, label string) *v1beta1.SidecarSet {
		s := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": label}}
		s.Spec.UpdateStrategy.Paused = true
		return s
	}
	p := pod(func(p *corev1.Pod) {
		p.Annotations = map[string]string{kruise.SidecarSetHashKey: `{"log":{"hash":"old","sidecarSetName":"log","sidecarList":["fluent"]},` +
			`"gone":{"hash":"old","sidecarSetName":"gone","sidecarList":["x"]}}`}
	})
	got := explain.Sidecars(p, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		[]*v1beta1.SidecarSet{set("log", "web"), set("late", "web"), set("other", "x"), set("gone", "x")})
	want := []string{
		"SidecarSet log injected fluent, outdated: the rollout of the set is paused",
		"SidecarSet late selects the pod, which was created without it",
		"SidecarSet gone injected x, and does not select the pod any more",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A pod of a held Deployment is explained by the Deployment, which controls its ReplicaSet. The hash of the ReplicaSet
// stands for the revision that the pod has not got yet.
func TestPodOfHeldDeployment(t *testing.T) {
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet"}}
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "annotations": map[string]any{
			"kruisekit.dev/rollout": `{"maxUnavailable":1}`, "kruisekit.dev/rollout-hold": "1",
			"kruisekit.dev/rollout-status": `{"state":"Progressing","revision":"web-2","pods":3}`,
		}},
		"spec": map[string]any{"paused": true, "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "app", "image": "app:2"}},
		}}},
	}}
	p := pod(func(p *corev1.Pod) {
		p.Labels = map[string]string{"pod-template-hash": "abc"}
		p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	})
	sections := explain.Pod(explain.Input{Pod: p, Owners: []*unstructured.Unstructured{set, deployment}}, time.Time{})
	want := explain.Section{Title: "Not updated from abc to web-2", Lines: []string{
		"waits until other pods are updated and available: maxUnavailable is 1",
		"the update is made in place and restarts app",
	}}
	if diff := cmp.Diff(want, sections[3]); diff != "" {
		t.Error(diff)
	}
}
