//go:build envtest

package imagelistpulljob_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// jobs of a list by image. Two of one image are an error.
func (b *bench) jobs(list *v1beta1.ImageListPullJob) (map[string]*v1beta1.ImagePullJob, error) {
	b.Helper()
	var all v1beta1.ImagePullJobList
	if err := b.Client.List(b.Context(), &all, client.InNamespace(b.Namespace)); err != nil {
		b.Fatal(err)
	}
	jobs := map[string]*v1beta1.ImagePullJob{}
	for i := range all.Items {
		j := &all.Items[i]
		if !metav1.IsControlledBy(j, list) || j.DeletionTimestamp != nil {
			continue
		}
		if jobs[j.Spec.Image] != nil {
			return nil, fmt.Errorf("%s and %s pull %s", j.Name, jobs[j.Spec.Image].Name, j.Spec.Image)
		}
		jobs[j.Spec.Image] = j
	}
	return jobs, nil
}

// hasJobs waits until a list has jobs of these images, and no others.
func (b *bench) hasJobs(list *v1beta1.ImageListPullJob, images ...string) map[string]*v1beta1.ImagePullJob {
	b.Helper()
	var jobs map[string]*v1beta1.ImagePullJob
	b.Until(func() (err error) {
		if jobs, err = b.jobs(list); err != nil {
			return err
		}
		if have := slices.Sorted(maps.Keys(jobs)); !slices.Equal(have, slices.Sorted(slices.Values(images))) {
			return fmt.Errorf("jobs of %v, want %v", have, images)
		}
		return nil
	})
	return jobs
}

// does writes the status of a job, as the reconciler of jobs would.
func (b *bench) does(job *v1beta1.ImagePullJob, desired, active, succeeded, failed int32) {
	b.Helper()
	now := metav1.Now()
	before := job.DeepCopy()
	job.Status = v1beta1.ImagePullJobStatus{
		StartTime: &now, Desired: desired, Active: active, Succeeded: succeeded, Failed: failed, Message: "written by a test",
	}
	if desired == succeeded+failed {
		job.Status.CompletionTime = &now
	}
	if err := b.Client.Status().Patch(b.Context(), job, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// counts waits for a status: active, completed and succeeded of desired, and whether the list has ended.
func (b *bench) counts(list *v1beta1.ImageListPullJob, active, completed, succeeded, desired int32, ended bool) {
	b.Helper()
	b.Until(func() error {
		b.refresh(list)
		s := list.Status
		if s.StartTime == nil || s.Active != active || s.Completed != completed || s.Succeeded != succeeded ||
			s.Desired != desired || (s.CompletionTime != nil) != ended {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
}

// gone waits until there is no such object.
func (b *bench) gone(o client.Object) {
	b.Helper()
	b.Until(func() error {
		if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil ||
			err == nil {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}
