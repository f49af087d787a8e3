package subset_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

const (
	one  = appsv1beta1.WorkloadSpreadVersionIgnored
	zone = "topology.kubernetes.io/zone"
)

func noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

// ago is a time before noon.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon().Add(-d)) }

// zoned is a subset in the zone of its name. A negative number is no limit, a text is a percentage.
func zoned(name string, most any) subset.Subset {
	s := subset.Subset{
		Name: name, RequiredNodeSelector: &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: zone, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		}},
	}
	switch n := most.(type) {
	case int:
		if n >= 0 {
			s.MaxReplicas = ptr.To(intstr.FromInt32(int32(n)))
		}
	case string:
		s.MaxReplicas = ptr.To(intstr.FromString(n))
	}
	return s
}

// spreadOf is a WorkloadSpread over subsets a, b, c ...
func spreadOf(limits ...any) *subset.Spread {
	ws := &subset.Spread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "spread", UID: "uid", Generation: 3}}
	for i, most := range limits {
		ws.Spec.Subsets = append(ws.Spec.Subsets, zoned(string(rune('a'+i)), most))
	}
	return ws
}

// adaptive makes a spread reschedule pods after so many seconds.
func adaptive(ws *subset.Spread, seconds int32) *subset.Spread {
	ws.Spec.ScheduleStrategy = appsv1beta1.WorkloadSpreadScheduleStrategy{
		Type:     appsv1beta1.AdaptiveWorkloadSpreadScheduleStrategyType,
		Adaptive: &appsv1beta1.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To(seconds)},
	}
	return ws
}

// stored gives a spread the entries of one version.
func stored(ws *subset.Spread, entries ...subset.Entry) *subset.Spread {
	ws.Status.VersionedSubsetStatuses = map[string][]subset.Entry{one: entries}
	return ws
}

func limitsOf(ws *subset.Spread, base int32) []int32 {
	limits, _ := subset.Limits(ws.Spec.Subsets, subset.Base{Replicas: base})
	return limits
}

// podIn is a ready pod of a subset; of none with an empty name.
func podIn(name, in string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: ago(time.Hour),
		},
		Spec: corev1.PodSpec{NodeName: "node-" + in, Containers: []corev1.Container{{Name: "app", Image: "web:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)},
		}},
	}
	if in != "" {
		pod.Annotations = map[string]string{
			kruise.MatchedWorkloadSpreadKey: subset.Text(subset.Match{Name: "spread", Subset: in}),
		}
	}
	return pod
}

func pods(n int, in string) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		all = append(all, podIn(fmt.Sprintf("web-%s-%02d", in, i), in))
	}
	return all
}

// unscheduled makes a pod wait for a node since a time.
func unscheduled(pod *corev1.Pod, since time.Duration) *corev1.Pod {
	pod.Spec.NodeName, pod.Status.Phase, pod.CreationTimestamp = "", corev1.PodPending, ago(since)
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}
	return pod
}

func members(all ...[]*corev1.Pod) []subset.Member {
	var ms []subset.Member
	for _, list := range all {
		for _, pod := range list {
			m, is := subset.MatchOf(pod)
			if !is {
				m.Subset = subset.Outside
			}
			ms = append(ms, subset.Member{Pod: pod, Version: one, Subset: m.Subset})
		}
	}
	return ms
}

// node is in the zone of its name after node-.
func node(name string) *corev1.Node {
	if len(name) < len("node-a") {
		return nil
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{zone: name[len("node-"):]}}}
}

func patch(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
