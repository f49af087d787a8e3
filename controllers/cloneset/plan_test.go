package cloneset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

// planCase is a set, what it owns, and the writes of its next pass.
type planCase struct {
	why     string
	options func(*Options)
	// replicas, and the set beside them.
	replicas int32
	set      func(*v1beta1.CloneSet)
	pods     []*corev1.Pod
	claims   []string
	want     []string
}

func checkPlans(t *testing.T, cases map[string]planCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(t, c.replicas, c.set)
			if c.options != nil {
				c.options(&o.options)
			}
			o.pods(c.pods...)
			o.claims(c.claims...)
			if diff := cmp.Diff(c.want, append([]string{}, o.writes()...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func withPercent(text string) *intstr.IntOrString { return ptr.To(intstr.FromString(text)) }
func withNumber(n int32) *intstr.IntOrString      { return ptr.To(intstr.FromInt32(n)) }

func inPlaceIfPossible(strategy v1beta1.RollingUpdateCloneSetStrategy) func(*v1beta1.CloneSet) {
	strategy.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType
	return rolling(strategy)
}

func onDelete(s *v1beta1.CloneSet) {
	s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetUpdateStrategyType
}

func hook(s *v1beta1.CloneSet) *kruise.Lifecycle {
	if s.Spec.Lifecycle == nil {
		s.Spec.Lifecycle = &kruise.Lifecycle{}
	}
	return s.Spec.Lifecycle
}

func holdsDeletion(s *v1beta1.CloneSet) {
	hook(s).PreDelete = &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "true"}}
}

func holdsUpdate(s *v1beta1.CloneSet) {
	hook(s).InPlaceUpdate = &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "true"}}
}

func named(names ...string) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.PodsToDelete = names }
}

func scalesWith(maxUnavailable *intstr.IntOrString) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.MaxUnavailable = maxUnavailable }
}

var held = podtest.Label("example.com/hook", "true")

// How many pods are created and deleted, and which.
func TestPlanScale(t *testing.T) {
	checkPlans(t, map[string]planCase{
		"converged": {why: "nothing is left to do", replicas: 2, pods: several(2, "web:1"), want: []string{}},
		"new set": {
			why: "all pods are created", replicas: 2, want: []string{"create web-new-a of web:1", "create web-new-b of web:1"},
		},
		"limited": {
			why: "no more than two pods may be unavailable", replicas: 5, set: scalesWith(withNumber(2)),
			want: []string{"create web-new-a of web:1", "create web-new-b of web:1"},
		},
		"limited, one not ready": {
			why: "the pod that is not ready counts", replicas: 6, set: scalesWith(withNumber(2)),
			pods: append(several(2, "web:1"), podtest.New("web-c", "web:1", podtest.NotReady)),
			want: []string{"create web-new-a of web:1"},
		},
		"limited, two not ready": {
			why: "no more pods may be unavailable", replicas: 6, set: scalesWith(withNumber(2)),
			pods: []*corev1.Pod{
				podtest.New("web-a", "web:1"), podtest.New("web-b", "web:1", podtest.NotReady),
				podtest.New("web-c", "web:1", podtest.NotReady),
			},
			want: []string{},
		},
		"limit that cannot be parsed": {
			why: "there is no limit", replicas: 2, set: scalesWith(withPercent("")),
			want: []string{"create web-new-a of web:1", "create web-new-b of web:1"},
		},
		"not available yet": {
			why: "a ready pod counts as unavailable for minReadySeconds", replicas: 3,
			set:  both(scalesWith(withNumber(1)), func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 10 }),
			pods: []*corev1.Pod{podtest.New("web-a", "web:1", podtest.ReadyFor(9*time.Second))}, want: []string{},
		},
		"available": {
			why:      "minReadySeconds are over",
			replicas: 3,
			set:      both(scalesWith(withNumber(1)), func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 10 }),
			pods:     []*corev1.Pod{podtest.New("web-a", "web:1", podtest.ReadyFor(10*time.Second))},
			want:     []string{"create web-new-a of web:1"},
		},
		"two revisions": {
			why:      "the partition has the current revision, and the rest the update revision",
			replicas: 5,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Partition: withNumber(3)}),
			pods:     several(2, "web:1"),
			want:     []string{"create web-new-a of web:1", "create web-new-b of web:2", "create web-new-c of web:2"},
		},
		"scale-in beyond the budget": {
			why: "ready pods that are not available are not deleted beyond the budget", replicas: 3,
			set: func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 9999 }, pods: several(5, "web:1"), want: []string{},
		},
		"scale-in": {
			why: "available pods of the same age are deleted from the last name", replicas: 1, pods: several(3, "web:1"),
			set:  rolling(v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: withPercent("100%"), Paused: true}),
			want: []string{"delete web-a", "delete web-b"},
		},
		"named pods": {
			why:      "they are deleted first",
			replicas: 2,
			set:      named("web-b"),
			pods:     several(3, "web:1"),
			want:     []string{"delete web-b"},
		},
		"named pod, same size": {
			why: "it is replaced", replicas: 3, set: both(onDelete, named("web-b")), pods: several(3, "web:1"),
			want: []string{"delete web-b"},
		},
		"chosen by label": {
			why: "the label has the effect of a name", replicas: 2, set: onDelete,
			pods: []*corev1.Pod{
				podtest.New("web-a", "web:1"), podtest.New("web-b", "web:1", podtest.Label(kruise.SpecifiedDeleteKey, "")),
			},
			want: []string{"delete web-b"},
		},
		"named and held": {
			why:      "the hook holds the named pod, and no other is deleted for it",
			replicas: 2,
			set:      both(named("web-b"), holdsDeletion),
			pods: []*corev1.Pod{
				podtest.New("web-a", "web:1"), podtest.New("web-b", "web:1", held), podtest.New("web-c", "web:1"),
			},
			want: []string{"move web-b to PreparingDelete"},
		},
		"held": {
			why: "the held pod counts until it is gone", replicas: 3, set: both(named("web-b"), holdsDeletion),
			pods: []*corev1.Pod{
				podtest.New("web-a", "web:1"),
				podtest.New("web-b", "web:1", held, podtest.State(kruise.LifecycleStatePreparingDelete)),
				podtest.New("web-c", "web:1"),
			},
			want: []string{},
		},
		"held, not counted": {
			why: "excludePreparingDelete replaces the held pod", replicas: 3,
			set: both(named("web-b"), holdsDeletion, func(s *v1beta1.CloneSet) {
				s.Spec.ScaleStrategy.ExcludePreparingDelete = true
			}),
			pods: []*corev1.Pod{
				podtest.New("web-a", "web:1"),
				podtest.New("web-b", "web:1", held, podtest.State(kruise.LifecycleStatePreparingDelete)),
				podtest.New("web-c", "web:1"),
			},
			want: []string{"create web-new-a of web:1"},
		},
		"held, not counted by option": {
			why: "the option has the effect of the field", replicas: 3, set: both(named("web-b"), holdsDeletion),
			options: func(o *Options) { o.ExcludePreparingDelete = true },
			pods: []*corev1.Pod{
				podtest.New("web-a", "web:1"),
				podtest.New("web-b", "web:1", held, podtest.State(kruise.LifecycleStatePreparingDelete)),
				podtest.New("web-c", "web:1"),
			},
			want: []string{"create web-new-a of web:1"},
		},
		"OnDelete, scale-in": {
			why: "old pods are deleted first", replicas: 1, set: both(withImage("web:2"), onDelete),
			pods: []*corev1.Pod{podtest.New("web-a", "web:2"), podtest.New("web-b", "web:1")}, want: []string{"delete web-b"},
		},
		"OnDelete, scale-out": {
			why: "new pods are updated ones", replicas: 2, set: both(withImage("web:2"), onDelete),
			pods: several(1, "web:1"), want: []string{"create web-new-a of web:2"},
		},
		"paused": {
			why:      "a paused set is scaled",
			replicas: 2,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Paused: true}),
			pods:     several(1, "web:1"),
			want:     []string{"create web-new-a of web:2"},
		},
		"being deleted": {
			why: "its pods are those of the garbage collector", replicas: 2,
			set: func(s *v1beta1.CloneSet) {
				s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: podtest.Noon()}, []string{"a/b"}
			}, want: []string{},
		},
		"released": {
			why: "the selector no longer matches the pod, which is replaced", replicas: 2,
			pods: []*corev1.Pod{podtest.New("web-a", "web:1"), podtest.New("web-b", "web:1", podtest.Label("app", "other"))},
			want: []string{"patch web-b", "create web-new-a of web:1"},
		},
	})
}

// Which pods are updated, and how.
func TestPlanUpdates(t *testing.T) {
	checkPlans(t, map[string]planCase{
		"OnDelete": {
			why:      "no pod is updated",
			replicas: 3,
			set:      both(withImage("web:2"), onDelete),
			pods:     several(3, "web:1"),
			want:     []string{},
		},
		"paused": {
			why: "no pod is updated", replicas: 3, set: inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Paused: true}),
			pods: several(3, "web:1"), want: []string{},
		},
		"partition": {
			why: "99% of four pods are four, of which one is updated all the same", replicas: 4,
			set:  inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Partition: withPercent("99%")}),
			pods: several(4, "web:1"), want: []string{"take web-a out of traffic", "update web-a to web:2"},
		},
		"partition reached": {
			why: "no other pod is updated", replicas: 4,
			set:  inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Partition: withPercent("99%")}),
			pods: append(several(3, "web:1"), podtest.New("web-d", "web:2")), want: []string{},
		},
		"budget": {
			why: "the pod that is not ready counts, and may be updated itself", replicas: 4,
			set:  inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: withNumber(2)}),
			pods: append(several(3, "web:1"), podtest.New("web-d", "web:1", podtest.NotReady)),
			want: []string{
				"take web-d out of traffic", "take web-a out of traffic", "update web-d to web:2", "update web-a to web:2",
			},
		},
		"budget by default": {
			why: "a fifth of five pods is one", replicas: 5, set: inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}),
			pods: several(5, "web:1"), want: []string{"take web-a out of traffic", "update web-a to web:2"},
		},
		"recreate": {
			why:      "one pod is marked, and deleted in a later pass",
			replicas: 5,
			set:      rolling(v1beta1.RollingUpdateCloneSetStrategy{}),
			pods:     several(5, "web:1"),
			want:     []string{"mark web-a"},
		},
		"not possible in place": {
			why: "a running container keeps its environment", replicas: 1,
			set: both(inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}), func(s *v1beta1.CloneSet) {
				s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
			}),
			pods: several(1, "web:1"), want: []string{"mark web-a"},
		},
		"not possible in place, InPlaceOnly": {
			why: "the pod is not recreated", replicas: 1,
			set: both(rolling(v1beta1.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType,
			}), func(s *v1beta1.CloneSet) {
				s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
			}),
			pods: several(1, "web:1"), want: []string{},
		},
		"held before the update": {
			why:      "the hook holds the pod, whose containers stay",
			replicas: 1,
			set:      both(inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}), holdsUpdate),
			pods:     several(1, "web:1", held),
			want:     []string{"move web-a to PreparingUpdate"},
		},
		"rolled back while held": {
			why:      "the pod is Normal again, and no container changes",
			replicas: 1,
			set:      both(inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}), holdsUpdate, withImage("web:1")),
			pods:     several(1, "web:1", held, podtest.State(kruise.LifecycleStatePreparingUpdate)),
			want:     []string{"move web-a to Normal"},
		},
		"grace period": {
			why: "the pod is out of traffic first", replicas: 1,
			set: inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{
				InPlaceUpdateStrategy: &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 60},
			}),
			pods: several(1, "web:1"), want: []string{"take web-a out of traffic", "update web-a to web:1"},
		},
		"maxUnavailable that cannot be parsed": {
			why:      "the default counts",
			replicas: 5,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: withPercent("5")}),
			pods:     several(5, "web:1"),
			want:     []string{"take web-a out of traffic", "update web-a to web:2"},
		},
		"partition that cannot be parsed": {
			why:      "it counts as none",
			replicas: 2,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Partition: withPercent("lots")}),
			pods:     several(2, "web:1"),
			want:     []string{"take web-a out of traffic", "update web-a to web:2"},
		},
		"template that the selector does not match": {
			why: "its pods would be released", replicas: 2,
			set: both(inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}), func(s *v1beta1.CloneSet) {
				s.Spec.Template.Labels = map[string]string{"app": "other"}
			}),
			pods: several(2, "web:1"), want: []string{},
		},
	})
}

// Which lifecycle states pods move to.
func TestPlanStates(t *testing.T) {
	preNormal := func(s *v1beta1.CloneSet) {
		hook(s).PreNormal = &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/ready": "yes"}}
	}
	preparing := podtest.State(kruise.LifecycleStatePreparingNormal)
	checkPlans(t, map[string]planCase{
		"on a node": {
			why:      "a new pod without a hook is Normal there",
			replicas: 1,
			pods:     several(1, "web:1", preparing),
			want:     []string{"move web-a to Normal"},
		},
		"on no node": {
			why: "the pod is not scheduled", replicas: 1, pods: several(1, "web:1", podtest.Unscheduled), want: []string{},
		},
		"preNormal": {
			why:      "the hook holds the new pod",
			replicas: 1,
			set:      preNormal,
			pods:     several(1, "web:1", preparing),
			want:     []string{},
		},
		"hook reached": {
			why:      "the pod has what the hook asks for",
			replicas: 1,
			set:      preNormal,
			pods:     several(1, "web:1", preparing, podtest.Label("example.com/ready", "yes")),
			want:     []string{"move web-a to Normal"},
		},
		"hook left": {
			why: "a Normal pod stays so", replicas: 1, set: preNormal, pods: several(1, "web:1"), want: []string{},
		},
	})
}
