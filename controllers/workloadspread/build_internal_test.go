package workloadspread

import (
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

func noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

// spreadOf is a WorkloadSpread of CloneSet web over subsets a, b ...; a negative limit is none.
func spreadOf(limits ...int32) *subset.Spread {
	ws := &subset.Spread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "spread", UID: "uid", Generation: 1}}
	ws.Spec.TargetReference = &appsv1beta1.TargetReference{
		APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web",
	}
	for i, limit := range limits {
		s := subset.Subset{
			Name: string(rune('a' + i)),
			RequiredNodeSelector: &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{string(rune('a' + i))}},
			}},
		}
		if limit >= 0 {
			s.MaxReplicas = ptr.To(intstr.FromInt32(limit))
		}
		ws.Spec.Subsets = append(ws.Spec.Subsets, s)
	}
	return ws
}

func adaptive(ws *subset.Spread) *subset.Spread {
	ws.Spec.ScheduleStrategy = appsv1beta1.WorkloadSpreadScheduleStrategy{
		Type:     appsv1beta1.AdaptiveWorkloadSpreadScheduleStrategyType,
		Adaptive: &appsv1beta1.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](10)},
	}
	return ws
}

// podOf is a new pod of the target.
func podOf(name string, now time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(now),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "uid-web", Controller: ptr.To(true),
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// run binds a pod to a node of a zone, and has the pod ready.
func run(pod *corev1.Pod, zone string, now time.Time) {
	pod.Spec.NodeName, pod.Status.Phase = "node-"+zone, corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
	}}
}

// snapshotOf is a snapshot of a target that wants as many pods as there are.
func snapshotOf(ws *subset.Spread, pods ...*corev1.Pod) *snapshot {
	return &snapshot{
		spread:    ws,
		pods:      pods,
		versioned: subset.DefaultVersioned(),
		newest:    appsv1beta1.WorkloadSpreadVersionIgnored,
		nodes:     map[string]*corev1.Node{},
		now:       noon(),
		target:    workloadspread.Target{UID: "uid-web", Base: subset.Base{Replicas: int32(len(pods))}},
	}
}

// recorded reads objects of a cluster that runs the reference.
func recorded[T any](stage, file string) ([]*T, error) {
	text, err := os.ReadFile("../../test/compat/testdata/recorded/" + stage + "/" + file)
	if err != nil {
		return nil, err
	}
	list := struct {
		Items []*T `json:"items"`
	}{}
	if err := yaml.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list.Items, nil
}
