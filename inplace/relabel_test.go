package inplace_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

// relabelling is a pod that goes from one template to another with the revision label last.
type relabelling struct {
	*testing.T

	k      *kubelet
	policy inplace.Policy
}

// to writes what is due on the way to a revision, and returns the subresources of the writes.
func (r *relabelling) to(from, to *corev1.PodTemplateSpec, revision string) (writes []string) {
	r.Helper()
	u := inplace.Update{Pod: r.k.pod}
	if revision != "" {
		change, err := inplace.Diff(from, to, r.policy)
		if err != nil {
			r.Fatal(err)
		}
		u.Change, u.Revision = change, revision
	}
	for range 10 {
		u.Pod = r.k.pod
		a, err := inplace.Next(u, r.policy, noon())
		if err != nil {
			r.Fatal(err)
		}
		if a.Verdict != inplace.Write {
			return writes
		}
		next, refused, err := apply(r.k.pod, a.Write)
		if err != nil || refused != nil {
			r.Fatal(err, refused)
		}
		r.k.pod = next
		name := "pod"
		if a.Write.Subresource != write.Main {
			name = a.Write.Subresource
		}
		writes = append(writes, name)
	}
	r.Fatal("the writes do not end")
	return nil
}

// run has the node do all that is written.
func (r *relabelling) run() {
	r.Helper()
	for range 3 {
		if _, err := r.k.sync(0, noon()); err != nil {
			r.Fatal(err)
		}
	}
	if err := r.k.tell(false); err != nil {
		r.Fatal(err)
	}
}

func (r *relabelling) expect(label, spec string, settled bool) {
	r.Helper()
	pod := r.k.pod
	if got := pod.Labels[kruise.PodRevisionLabelKey]; got != label {
		r.Errorf("label %s, want %s", got, label)
	}
	if got := inplace.RevisionOf(pod, r.policy); got != spec {
		r.Errorf("spec of %s, want %s", got, spec)
	}
	if got := inplace.Settled(pod, r.policy); got != settled {
		r.Errorf("settled is %v, want %v", got, settled)
	}
}

// TestRelabelLast follows the revision label through an update, one that is taken back, and one that no container
// takes part in.
func TestRelabelLast(t *testing.T) {
	one := template(container("c1", "app:1"))
	two, three := with(one, image(0, "app:2")), with(one, image(0, "app:2"), label("a", "b"))
	k, err := start(running(one, "r-1"), false, "")
	if err != nil {
		t.Fatal(err)
	}
	r := &relabelling{T: t, k: k, policy: inplace.Policy{Relabel: inplace.RelabelLast}}
	same := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("writes %v, want %v", got, want)
		}
	}

	same(r.to(one, two, "r-2"), "status", "pod")
	r.expect("r-1", "r-2", false)
	same(r.to(two, one, "r-1"), "pod", "status") // taken back before the node has seen it
	r.expect("r-1", "r-1", true)
	r.run()
	same(r.to(one, two, "r-2"), "status", "pod")
	r.run()
	same(r.to(nil, nil, ""), "status") // the node runs it, and the pod is not ready yet
	r.expect("r-1", "r-2", false)
	same(r.to(nil, nil, ""))
	r.run()
	same(r.to(nil, nil, ""), "pod")
	r.expect("r-2", "r-2", true)
	same(r.to(two, three, "r-3"), "pod") // nothing restarts: the label changes with the rest
	r.expect("r-3", "r-3", true)
	if restarts := k.pod.Status.ContainerStatuses[0].RestartCount; restarts != 1 {
		t.Errorf("%d restarts, want 1", restarts)
	}
}

// TestRelabelOfAnotherPolicy continues an update whose controller changed the policy in between.
func TestRelabelOfAnotherPolicy(t *testing.T) {
	one := template(container("c1", "app:1"))
	k, err := start(running(one, "r-1"), false, "")
	if err != nil {
		t.Fatal(err)
	}
	r := &relabelling{T: t, k: k, policy: inplace.Policy{Relabel: inplace.RelabelLast}}
	r.to(one, with(one, image(0, "app:2")), "r-2")
	r.run()
	r.policy.Relabel = inplace.RelabelDone
	r.to(nil, nil, "") // ready or not
	r.expect("r-2", "r-2", true)
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

// TestRelabelByAnotherClock updates a pod that, by the clock of its controller, is not created yet.
func TestRelabelByAnotherClock(t *testing.T) {
	p := inplace.Policy{Relabel: inplace.RelabelLast}
	pod := running(template(container("c1", "app:1")), "r-1")
	pod.CreationTimestamp = metav1.NewTime(noon().Add(time.Hour))
	u := inplace.Update{Pod: pod, Revision: "r-2", Change: &inplace.Change{Images: images("c1", "app:2")}}
	for _, subresource := range []string{write.Status, write.Main} {
		a, err := inplace.Next(u, p, noon())
		if err != nil || a.Verdict != inplace.Write || a.Write.Subresource != subresource {
			t.Fatalf("%+v, %v", a, err)
		}
		after, refused, err := apply(u.Pod, a.Write)
		if refused != nil || err != nil {
			t.Fatal(refused, err)
		}
		u.Pod = after
	}
	if got := inplace.RevisionOf(u.Pod, p); got != "r-2" {
		t.Errorf("revision %q, want r-2", got)
	}
}
