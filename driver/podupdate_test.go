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
			pass := driver.UpdatePod(u, inplace.Policy{}, time.Unix(0, 0))
			err := driver.Run(t.Context(), pass, driver.Options[*write.Write]{Send: send})
			if sent != c.writes || pass.Action().Verdict != c.verdict || (err != nil) != c.fails {
				t.Errorf("%d writes, %+v, %v", sent, pass.Action(), err)
			}
			if c.verdict == inplace.Wait && (pass.RequeueAfter() == 0 || len(pass.Notes()) == 0 ||
				pass.Pod().Spec.Containers[0].Image != "web:1") {
				t.Errorf("after %s, %v", pass.RequeueAfter(), pass.Notes())
			}
		})
	}
}
