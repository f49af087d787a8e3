//go:build envtest

package imagepulljob_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// Whatever write is lost, before it is applied or after: every node pulls once, secrets are copied once and released,
// and what has an end ends.
func TestFaults(t *testing.T) {
	const runs = 12
	b := newBench(t)
	f := b.Faults(0)
	b.Beside(b.nodes.add)
	b.reconcile(imagepulljob.Options{}, func(c client.WithWatch) client.Client { return podbench.Writes(c, f.Do) })
	b.have(4)
	b.secret("login", `{}`)
	jobs := make([]*v1beta1.ImagePullJob, runs)
	for i := range jobs {
		jobs[i] = b.create(fmt.Sprintf("job-%d", i), fmt.Sprintf("app:%d", i), parallel(int32(1+i%3)), secrets("login"))
	}
	for _, job := range jobs {
		b.status(job, "4/0/4/0", "job has completed")
	}
	b.copied()
	for n := range 4 {
		for _, tag := range b.nodeImage(n + 1).Spec.Images["app"].Tags {
			if tag.Version != 0 || len(tag.OwnerReferences) != 1 {
				t.Errorf("node %d: tag %+v was asked for twice", n+1, tag)
			}
		}
	}
	for _, job := range jobs {
		b.Until(func() error { return b.unheld(job) })
	}
}

// A process that ends in the middle leaves nothing behind that the next one does not take up, and nothing is done
// twice.
func TestRestart(t *testing.T) {
	b := newBench(t)
	b.Beside(b.nodes.add)
	b.have(6)
	b.secret("login", `{}`)
	b.nodes.tell("nginx:1", v1beta1.ImagePhasePulling)
	stop := b.reconcile(imagepulljob.Options{}, plain)
	job := b.create("web", "nginx:1", parallel(2), secrets("login"))
	gone := b.create("gone", "nginx:2", parallel(2), secrets("login"), never)
	b.status(job, "6/2/0/0", "job is running, progress 0.0%")
	b.copied(`login {} gone,web`)
	stop()
	b.nodes.tell("nginx:1", v1beta1.ImagePhaseSucceeded)
	// No finalizer holds it any more, and what it used is not released.
	b.change(gone, func(j *v1beta1.ImagePullJob) { j.Finalizers = nil })
	if err := b.Client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	b.reconcile(imagepulljob.Options{}, plain)
	b.status(job, "6/0/6/0", "job has completed")
	for n := range 6 {
		if tag := b.nodeImage(n + 1).Spec.Images["nginx"].Tags[0]; tag.Version != 0 || len(tag.OwnerReferences) != 1 {
			t.Errorf("node %d: tag %+v was asked for twice", n+1, tag)
		}
	}
}
