package cloneset_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// A set and a kubelet that rejects its pods do not create and reject them without end: pauses grow to a minute. Pods
// that nodes take do not wait, another spec is tried at once, and the set says what it waits for.
func TestRejectedPods(t *testing.T) {
	m := newModel(t, cloneset.Options{NewID: numbered()})
	full := true
	m.Kubelet.Rejects = func(pod *corev1.Pod) bool { return full && pod.Name != "web-aa" && pod.Name != "web-ab" }
	set := m.create("web", 4, nil)
	m.RunFor(time.Hour)
	created, statuses := 0, 0
	for _, request := range m.Server.Requests() {
		if strings.HasPrefix(request, "POST pods/") {
			created++
		}
		if strings.Contains(request, "/status") {
			statuses++
		}
	}
	if statuses > 3*70 {
		t.Errorf("%d writes of the status in an hour, want a few a minute", statuses)
	}
	if most := 2 + 2*70; created > most || created < 60 {
		t.Errorf("%d pods are created in an hour, want two a minute at most: %d", created, most)
	}
	if events := m.Server.Events(set, "FailedCreate"); len(events) == 0 ||
		!strings.Contains(events[len(events)-1].Message, "a kubelet rejected it: OutOfpods") {
		t.Errorf("events %v", events)
	}
	m.stays(set, func(s *v1beta1.CloneSet, _ []corev1.Pod) error {
		if s.Status.ReadyReplicas != 2 {
			return fmt.Errorf("%d pods are ready, want those that the nodes take", s.Status.ReadyReplicas)
		}
		return nil
	})
	full = false
	m.scale(set, 5)
	m.stays(set, settled)
}

// A pod that its kubelet rejects once is replaced at once.
func TestRejectedPod(t *testing.T) {
	m := newModel(t, cloneset.Options{NewID: numbered()})
	m.Kubelet.Rejects = func(pod *corev1.Pod) bool { return pod.Name == "web-ab" }
	set := m.create("web", 3, nil)
	m.stays(set, settled)
}
