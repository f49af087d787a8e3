package driver_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

// A pass ends whatever is answered.
func TestUpdatePodEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer  write.Object
		writes  int
		verdict inplace.Verdict
		fails   bool
	}{
		"the pod as it was, as where a webhook reverts each write": {
			answer: pod("web-0"), writes: 8, verdict: inplace.Wait,
		},
		"another object": {answer: &corev1.Node{}, writes: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			send := func(context.Context, *write.Write) (write.Object, error) {
				sent++
				return c.answer, nil
			}
			u := inplace.Update{
				Pod: pod("web-0"), Change: &inplace.Change{Images: map[string]string{"main": "web:2"}}, Revision: "web-2",
			}
			u.Pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "web:1"}}
			if p, is := c.answer.(*corev1.Pod); is {
				p.Spec.Containers = u.Pod.Spec.Containers
			}
			now := func() time.Time { return time.Unix(0, 0) }
			left, action, err := driver.UpdatePod(t.Context(), send, u, driver.PodOptions{Now: now})
			if sent != c.writes || action.Verdict != c.verdict || (err != nil) != c.fails {
				t.Errorf("%d writes, %+v, %v", sent, action, err)
			}
			if c.verdict == inplace.Wait && (action.After == 0 || len(action.Notes) == 0 ||
				left.Spec.Containers[0].Image != "web:1") {
				t.Errorf("%+v", action)
			}
		})
	}
}
