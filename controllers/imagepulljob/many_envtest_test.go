//go:build envtest

package imagepulljob_test

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/requests"
)

var (
	manyJobs  = flag.Int("jobs", 60, "how many jobs select the same nodes")
	manyNodes = flag.Int("nodes", 100, "how many nodes they select")
)

// Many jobs select many nodes, and each has its tag on the first of them, two in a repository. What happens to one tag
// is looked at by the job that asked for it, once, and by no other. With -jobs 200 -nodes 1000 it takes minutes.
func TestManyJobs(t *testing.T) {
	jobs, nodes := *manyJobs, *manyNodes
	t.Parallel()
	b := newBench(t)
	b.patience += time.Duration(jobs+nodes) * time.Second / 4
	b.haveMany(nodes)
	all := make([]*v1beta1.ImagePullJob, jobs)
	for i := range all {
		image := fmt.Sprintf("app-%d:%d", i/2, i%2)
		all[i] = b.create(fmt.Sprintf("job-%03d", i), image)
	}
	b.reconcile(imagepulljob.Options{}, plain)
	for _, job := range all {
		b.status(job, fmt.Sprintf("%d/1/0/0", nodes), "job is running, progress 0.0%")
	}
	wrote := requests.About(b.requests.Take(), "nodeimages/")
	// Jobs take turns, so that a conflict takes a cache that learns of a write in the very moment between two of its
	// readers.
	if told, lost := len(requests.About(wrote, "PATCH")), len(requests.About(wrote, " 409")); told-lost != jobs ||
		lost > 2 {
		t.Errorf("%d writes for %d jobs that tell one node, %d in conflict", told, jobs, lost)
	}
	b.edit(1, func(n *v1beta1.NodeImage) {
		n.Status = imagepull.Work(n, nil).Status
	})
	b.quiet()
	if tags := len(b.nodeImage(1).Spec.Images); tags != jobs/2 {
		t.Fatalf("%d images on the first node, want %d", tags, jobs/2)
	}

	b.passes.take()
	b.edit(1, func(n *v1beta1.NodeImage) {
		n.Status.ImageStatuses["app-7"].Tags[0].Phase = v1beta1.ImagePhaseSucceeded
	})
	b.status(all[14], fmt.Sprintf("%d/1/1/0", nodes), fmt.Sprintf("job is running, progress %.1f%%", 100/float64(nodes)))
	b.quiet()
	if diff := cmp.Diff(map[string]int{"job-014": 1}, b.passes.take()); diff != "" {
		t.Errorf("a pull has ended, passes (-want +got):\n%s", diff)
	}

	b.edit(1, func(n *v1beta1.NodeImage) {
		image := n.Status.ImageStatuses["app-9"]
		image.Tags[1].Progress = 50
		image.Tags[1].Message = "half of it"
	})
	b.quiet()
	if diff := cmp.Diff(map[string]int(nil), b.passes.take()); diff != "" {
		t.Errorf("a pull goes on, passes (-want +got):\n%s", diff)
	}

	image := b.nodeImage(1)
	before := image.DeepCopy()
	image.Spec.Images["app-20"].Tags[0].OwnerReferences = nil
	if err := b.client.Patch(t.Context(), image, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	b.until(func() error {
		if len(b.nodeImage(1).Spec.Images["app-20"].Tags[0].OwnerReferences) != 1 {
			return fmt.Errorf("the job has not asked again")
		}
		return nil
	})
	b.quiet()
	if diff := cmp.Diff(map[string]int{"job-040": 1}, b.passes.take()); diff != "" {
		t.Errorf("a job has lost its tag, passes (-want +got):\n%s", diff)
	}
}

// haveMany makes NodeImages several at a time.
func (b *bench) haveMany(n int) {
	b.Helper()
	var makers sync.WaitGroup
	names := make(chan string)
	for range 8 {
		makers.Add(1)
		go func() {
			defer makers.Done()

			for name := range names {
				image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{
					Name: name, Labels: map[string]string{"bench": b.namespace},
				}}
				if err := b.client.Create(b.Context(), image); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	for i := range n {
		names <- b.node(i + 1)
	}
	close(names)
	makers.Wait()
}

// edit writes the status of a NodeImage.
func (b *bench) edit(n int, change func(*v1beta1.NodeImage)) {
	b.Helper()
	image := b.nodeImage(n)
	before := image.DeepCopy()
	change(image)
	if err := b.client.Status().Patch(b.Context(), image, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}
