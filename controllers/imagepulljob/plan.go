package imagepulljob

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// invalid returns the first fault for which the webhook rejects a job that has its defaults; nil if there is none.
func invalid(job *pullJob) error {
	if faults := validation.ImagePullJob(job); len(faults) > 0 {
		return faults[0]
	}
	return nil
}

// newborn is the age at which a job that selects no node has none. Until then, nodes and pods from before the job may
// be missing in their caches, and a job that has ended is not reconciled again.
const newborn = 2 * time.Second

// wait is how long to wait for the nodes that a job selects, which has found none yet.
func (s *snapshot) wait() time.Duration {
	age := s.request.Now.Sub(s.job.CreationTimestamp.Time)
	if len(s.nodes) > 0 || s.job.Status.StartTime != nil || age < -newborn { // or clocks differ
		return 0
	}
	return min(newborn-age, newborn)
}

// indexes are those of the nodes of some names.
func (s *snapshot) indexes(names []string) []int {
	at := make(map[string]int, len(s.nodes))
	for i, node := range s.nodes {
		at[node.Name] = i
	}
	all := make([]int, len(names))
	for i, name := range names {
		all[i] = at[name]
	}
	return all
}

// plan returns the status of a job under way after its nodes were asked, with the notes, and when to look again.
func (s *snapshot) plan() (imagepull.JobPlan, error) {
	plan, err := s.request.Review(s.nodes)
	if err != nil {
		return plan, err
	}
	plan.Notes = append(s.notes, plan.Notes...)
	if s.unplaced != nil {
		plan.Notes = append(plan.Notes, note.Note{
			Level: note.Blocked, Code: imagepull.NoteUnplaced, Object: s.secretNamespace, Text: s.unplaced.Error(),
		})
	}
	if s.unplaced != nil && plan.Status.CompletionTime == nil {
		plan.Status.Message += fmt.Sprintf(", pull secrets cannot be copied to namespace %s", s.secretNamespace)
	}
	if s.more {
		plan.RequeueAfter = time.Millisecond
	}
	return plan, nil
}

// nodeWrite returns the write of a NodeImage that a job was added to. After a conflict it tests the version: the image
// that is stored may differ from what this process reads of it.
func nodeWrite(node, changed *nodeImage, conflicts int) *write.Write {
	if conflicts > 0 {
		return stored.Change(node, changed)
	}
	const images = "/spec/images"
	if node.Spec.Images == nil {
		return write.JSON(node, "", write.Test(images, nil), write.Add(images, changed.Spec.Images))
	}
	var ops []write.Op
	for name, image := range changed.Spec.Images {
		before, ok := node.Spec.Images[name]
		if ok && equality.Semantic.DeepEqual(before, image) {
			continue
		}
		path := images + write.Pointer(name)
		if ok {
			ops = append(ops, write.Test(path, before))
		} else {
			ops = append(ops, write.Test(path, nil))
		}
		ops = append(ops, write.Add(path, image))
	}
	return write.JSON(node, "", ops...)
}

// ending returns the writes of a job that has ended: without its finalizer, which older versions and OpenKruise add,
// and deleted after its TTL. after is when to look again.
func (s *snapshot) ending(jobs stored.Kind) (writes []*write.Write, after time.Duration, err error) {
	isOurs := func(f string) bool { return f == v1beta1.ImagePullJobFinalizerKey }
	if slices.ContainsFunc(s.job.Finalizers, isOurs) {
		writes = append(writes, jobs.Finalizers(s.job, slices.DeleteFunc(slices.Clone(s.job.Finalizers), isOurs)))
	}
	if s.job.DeletionTimestamp != nil {
		return writes, 0, nil
	}
	plan, err := s.request.Review(nil)
	if plan.Delete {
		writes = append(writes, jobs.Deletion(s.job))
	}
	return writes, max(plan.RequeueAfter, 0), err
}

// counters are the fields of a status that are always written: the schema requires one, and lists print all.
func counters(s *v1beta1.ImagePullJobStatus) map[string]any {
	return map[string]any{"desired": s.Desired, "active": s.Active, "succeeded": s.Succeeded, "failed": s.Failed}
}
