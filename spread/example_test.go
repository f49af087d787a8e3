package spread_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/spread"
)

// Own nodes run four replicas, rented nodes the rest. A zone that is down keeps what is ready.
func ExampleAllocate() {
	own := spread.Subset{Name: "own", MaxReplicas: ptr.To(intstr.FromInt32(4))}
	fmt.Println(spread.Allocate(spread.Input{
		Replicas: ptr.To[int32](10), Subsets: []spread.Subset{own, {Name: "rented"}},
	}).Replicas)
	own.Exists, own.Current, own.Ready, own.Unschedulable = true, 4, 1, true
	fmt.Println(spread.Allocate(spread.Input{
		Mode:     spread.Adaptive,
		Replicas: ptr.To[int32](10),
		Subsets:  []spread.Subset{own, {Name: "rented", Exists: true, Current: 6, Ready: 6}},
	}).Replicas)
	// Output:
	// [4 6]
	// [1 9]
}

func waiting(since time.Duration) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", CreationTimestamp: metav1.NewTime(now().Add(-since))}}
	pod.Labels = map[string]string{kruise.ControllerRevisionHashLabelKey: "web-1a"}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}
	return pod
}

func ExampleSchedule() {
	w := spread.Windows{Critical: 30 * time.Second, Unschedulable: 5 * time.Minute}
	v := spread.Schedule(spread.State{Pods: []*corev1.Pod{waiting(20 * time.Second)}}, w, now())
	fmt.Println(v.Unschedulable, v.RecheckAfter)
	v = spread.Schedule(spread.State{Pods: []*corev1.Pod{waiting(40 * time.Second)}}, w, now())
	fmt.Println(v.Unschedulable, v.RecheckAfter, v.Condition.Message)
	// Output:
	// false 10s
	// true 5m0s timeout pending pods found: 1
}

func ExampleReserve() {
	w := spread.Windows{Critical: 30 * time.Second, Unschedulable: 5 * time.Minute}
	r := spread.Reservation{State: spread.State{Pods: []*corev1.Pod{waiting(40 * time.Second)}}, Revision: "web-1a"}
	v := spread.Reserve(r, w, now())
	for _, l := range v.Labels {
		fmt.Println(l.Pod.Name, l.Value())
	}
	fmt.Println(v.Pods, v.Condition.Message)
	// Output:
	// web-1 true
	// 1 reserved pods found
}

func ExamplePartition() {
	fmt.Println(spread.Partition(map[string]int32{"zone-a": 2}, "zone-a", 1))
	// Output: 1
}
