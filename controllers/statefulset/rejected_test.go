package statefulset_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
)

// A set and a kubelet that rejects its pods do not create and reject them without end: pauses grow to a minute.
func TestRejectedPods(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.StatefulSet){
		"in order": func(*v1beta1.StatefulSet) {}, "parallel": parallel,
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, statefulset.Options{})
			m.Kubelet.Rejects = func(pod *corev1.Pod) bool { return pod.Name == "web-1" }
			set := m.create("web", 3, change)
			m.RunFor(time.Hour)
			created := 0
			for _, request := range m.Server.Requests() {
				if strings.HasPrefix(request, "POST pods/web-1 ") {
					created++
				}
			}
			if created > 70 || created < 60 {
				t.Errorf("the pod is created %d times in an hour, want once a minute", created)
			}
			if events := m.Server.Events(set, "FailedCreate"); len(events) == 0 ||
				!strings.Contains(events[len(events)-1].Message, "a kubelet rejected it: OutOfpods") {
				t.Errorf("events %v", events)
			}
		})
	}
}
