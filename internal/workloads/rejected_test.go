package workloads

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// failed returns pods that have failed, of which no container has run.
func failed(uids ...string) []*corev1.Pod {
	pods := make([]*corev1.Pod, len(uids))
	for i, uid := range uids {
		pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)},
			Status:     corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods"},
		}
	}
	return pods
}

// Each look is at what exists then. want are how many new pods wait, and how long.
func TestRejections(t *testing.T) {
	type look struct {
		after      time.Duration
		generation int64
		pods       []*corev1.Pod
		want       int
		d          time.Duration
	}
	ran := failed("a", "b", "c")
	for _, pod := range ran {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{}, {ContainerID: "containerd://1"}}
	}
	for why, looks := range map[string][]look{
		"none failed":         {{pods: nil}, {pods: nil}},
		"they ran":            {{pods: ran[:1]}, {pods: ran[1:]}},
		"one is no sequence":  {{pods: failed("a")}, {pods: failed("a")}, {after: time.Hour, pods: failed("a")}},
		"another one at once": {{pods: failed("a")}, {pods: failed("b"), want: 1, d: time.Second}},
		"it is counted once": {
			{pods: failed("a")}, {pods: failed("b"), want: 1, d: time.Second}, {pods: failed("b"), want: 1, d: time.Second},
		},
		"more of them in the pause": {
			{pods: failed("a")},
			{pods: failed("b"), want: 1, d: time.Second},
			{after: 400 * time.Millisecond, pods: failed("b", "c", "d"), want: 3, d: 600 * time.Millisecond},
		},
		"the pause is over": {
			{pods: failed("a")}, {pods: failed("b"), want: 1, d: time.Second}, {after: time.Second, pods: failed("b")},
		},
		"again and again": {
			{pods: failed("a")},
			{pods: failed("b"), want: 1, d: time.Second},
			{after: time.Second, pods: failed("c", "d"), want: 2, d: 2 * time.Second},
			{after: 3 * time.Second, pods: failed("e"), want: 1, d: 4 * time.Second},
			{after: time.Minute, pods: failed("f"), want: 1, d: 8 * time.Second},
		},
		"long after that": {
			{pods: failed("a")}, {pods: failed("b"), want: 1, d: time.Second}, {after: 62 * time.Second, pods: failed("c")},
		},
		"another spec": {
			{pods: failed("a")}, {pods: failed("b"), want: 1, d: time.Second}, {generation: 1, pods: failed("b")},
		},
		"another spec, too": {
			{pods: failed("a")}, {generation: 1, pods: failed("b")}, {generation: 1, pods: failed("c"), want: 1, d: time.Second},
		},
	} {
		var r rejections
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		for i, l := range looks {
			now = now.Add(l.after)
			r = r.next(l.generation, l.pods, now)
			if n, d := r.wait(now); n != l.want || d != l.d {
				t.Errorf("%s, look %d: %d pods wait %v, want %d and %v", why, i, n, d, l.want, l.d)
			}
		}
	}
}

// Pauses end at a minute, and never end where nodes reject each new pod.
func TestRejectionsPause(t *testing.T) {
	var r rejections
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	created := 0
	for end := now.Add(time.Hour); now.Before(end); now = now.Add(500 * time.Millisecond) {
		if n, _ := r.wait(now); n == 0 {
			created++
		}
		r = r.next(0, failed(fmt.Sprint(created)), now)
	}
	if created < 60 || created > 70 {
		t.Errorf("%d creations in an hour, want one a minute", created)
	}
}
