//go:build envtest

package imagelistpulljob_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

// Whichever writes fail, before or after the API server applied them, each image has one job, created once, and the
// list completes and is deleted.
func TestFaults(t *testing.T) {
	b := newBench(t)
	const runs = 12
	faults := b.Faults(0)
	b.start(func(c client.WithWatch) client.WithWatch { return podbench.Writes(c, faults.Do) })
	var lists []*v1beta1.ImageListPullJob
	for i := range runs {
		lists = append(lists, b.create(fmt.Sprint("list-", i), []string{"a:1", "b:1", "c:1"}))
	}
	for _, list := range lists {
		b.hasJobs(list, "a:1", "b:1", "c:1")
		b.change(list, func(l *v1beta1.ImageListPullJob) {
			l.Spec.Images = []string{"c:1", "d:1"}
			l.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](0)
		})
	}
	for _, list := range lists {
		var jobs map[string]*v1beta1.ImagePullJob
		b.Until(func() (err error) {
			if jobs, err = b.jobs(list); err != nil || len(jobs) != 2 || jobs["c:1"] == nil || jobs["d:1"] == nil ||
				slices.ContainsFunc([]string{"c:1", "d:1"}, func(i string) bool {
					return jobs[i].Spec.CompletionPolicy.TTLSecondsAfterFinished == nil
				}) {
				return fmt.Errorf("jobs %v: %w", jobs, err)
			}
			return nil
		})
		for _, job := range jobs {
			b.does(job, 1, 0, 1, 0)
		}
	}
	for _, list := range lists {
		b.gone(list)
	}
	if made := requests.About(b.Asked(), "POST imagepulljobs 201"); len(made) != 5*runs {
		t.Errorf("%d jobs were made, want %d", len(made), 5*runs)
	}
}
