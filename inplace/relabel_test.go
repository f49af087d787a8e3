package inplace_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// TestRelabelLast follows the revision label: it changes last, when the pod is ready, or before that where the
// controller changes the policy in between. By the clock of the controller the pod is not created yet.
func TestRelabelLast(t *testing.T) {
	for _, then := range []inplace.Relabel{inplace.RelabelLast, inplace.RelabelDone} {
		p := inplace.Policy{Relabel: inplace.RelabelLast}
		pod := running(template(container("c1", "app:1")), "r-1")
		pod.CreationTimestamp = metav1.NewTime(noon().Add(time.Hour))
		u := inplace.Update{Pod: pod, Revision: "r-2", Change: &inplace.Change{Images: images("c1", "app:2")}}
		next := func(verdict inplace.Verdict) inplace.Action {
			t.Helper()
			a, err := inplace.Next(u, p, noon())
			if err != nil || a.Verdict != verdict {
				t.Fatalf("%s: %+v, %v, want %s", then, a, err, verdict)
			}
			if verdict == inplace.Write {
				u.Pod = applied(t, u.Pod, a)
			}
			return a
		}
		expect := func(label, revision string, settled bool) {
			t.Helper()
			got, has, is := u.Pod.Labels[kruise.PodRevisionLabelKey], inplace.RevisionOf(u.Pod, p), inplace.Settled(u.Pod, p)
			if got != label || has != revision || is != settled {
				t.Errorf("%s: label %s, revision %s, settled %v", then, got, has, is)
			}
		}
		next(inplace.Write) // out of traffic
		next(inplace.Write) // the image
		expect("r-1", "r-2", false)
		restart(u.Pod, 0)
		p.Relabel, u = then, inplace.Update{Pod: u.Pod}
		next(inplace.Write) // into traffic
		if then == inplace.RelabelLast {
			if a := next(inplace.Wait); a.Notes[0].Code != inplace.NoteRelabel {
				t.Errorf("waits with %v", a.Notes)
			}
			expect("r-1", "r-2", false)
			condition(u.Pod, corev1.PodReady).Status = corev1.ConditionTrue
		}
		next(inplace.Write) // the label
		expect("r-2", "r-2", true)
	}
}

// TestRelabelOfATemplate has pods whose template has the annotation: where labels change first, it means nothing.
func TestRelabelOfATemplate(t *testing.T) {
	pod := running(template(container("c1", "app:1")), "r-1")
	pod.Annotations = map[string]string{kruise.PendingRevisionKey: "r-7"}
	if got := inplace.RevisionOf(pod, inplace.Policy{}); got != "r-1" || !inplace.Settled(pod, inplace.Policy{}) {
		t.Errorf("revision %q, want r-1 and settled", got)
	}
	a, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon())
	if err != nil || a.Verdict != inplace.Complete {
		t.Errorf("%+v, %v; want nothing to do", a, err)
	}
}
