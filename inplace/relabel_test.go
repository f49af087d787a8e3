package inplace_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// TestRelabelOfAnotherPolicy continues an update whose controller changed the policy in between. By the clock of the
// controller the pod is not created yet.
func TestRelabelOfAnotherPolicy(t *testing.T) {
	p := inplace.Policy{Relabel: inplace.RelabelLast}
	pod := running(template(container("c1", "app:1")), "r-1")
	pod.CreationTimestamp = metav1.NewTime(noon().Add(time.Hour))
	u := inplace.Update{Pod: pod, Revision: "r-2", Change: &inplace.Change{Images: images("c1", "app:2")}}
	expect := func(label, revision string, settled bool) {
		t.Helper()
		if got := u.Pod.Labels[kruise.PodRevisionLabelKey]; got != label {
			t.Errorf("label %s, want %s", got, label)
		}
		if got, is := inplace.RevisionOf(u.Pod, p), inplace.Settled(u.Pod, p); got != revision || is != settled {
			t.Errorf("revision %s, settled %v", got, is)
		}
	}
	for range 2 { // out of traffic, and the image
		a, err := inplace.Next(u, p, noon())
		if err != nil {
			t.Fatal(err)
		}
		u.Pod = applied(t, u.Pod, a)
	}
	expect("r-1", "r-2", false)
	restart(u.Pod, 0)
	p.Relabel = inplace.RelabelDone
	u = inplace.Update{Pod: u.Pod}
	for range 2 { // into traffic, ready or not, and the label
		a, err := inplace.Next(u, p, noon())
		if err != nil {
			t.Fatal(err)
		}
		u.Pod = applied(t, u.Pod, a)
	}
	expect("r-2", "r-2", true)
}

// TestRelabelOfATemplate has pods whose template has the annotation: where labels change first, it means nothing.
func TestRelabelOfATemplate(t *testing.T) {
	pod := running(template(container("c1", "app:1")), "r-1")
	pod.Annotations = map[string]string{inplace.PendingRevisionKey: "r-7"}
	if got := inplace.RevisionOf(pod, inplace.Policy{}); got != "r-1" || !inplace.Settled(pod, inplace.Policy{}) {
		t.Errorf("revision %q, want r-1 and settled", got)
	}
	a, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon())
	if err != nil || a.Verdict != inplace.Complete {
		t.Errorf("%+v, %v; want nothing to do", a, err)
	}
}
