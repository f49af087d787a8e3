//go:build envtest

package imagelistpulljob_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/requests"
)

// Two images make two jobs, and the list ends with them. That takes one write for each job, one for the label, and one
// for each status that differs; nothing is read.
func TestImagesBecomeJobs(t *testing.T) {
	b := start(t)
	list := b.create("ahead", []string{"nginx:1", "redis:1"}, func(l *v1beta1.ImageListPullJob) {
		l.Spec.PullSecrets = []string{"login"}
		l.Spec.Parallelism = ptr.To(intstr.FromInt32(3))
	})
	jobs := b.hasJobs(list, "nginx:1", "redis:1")
	b.counts(list, 0, 0, 0, 2, false)
	wanted := list.DeepCopy()
	wanted.Default()
	hash := imagepull.TemplateHash(wanted.Spec.ImagePullJobTemplate)
	for image, job := range jobs {
		if diff := cmp.Diff(v1beta1.ImagePullJobSpec{Image: image, ImagePullJobTemplate: wanted.Spec.ImagePullJobTemplate},
			job.Spec); diff != "" {
			t.Errorf("spec of the job (-want +got):\n%s", diff)
		}
		owner := metav1.GetControllerOf(job)
		if !strings.HasPrefix(job.Name, "ahead-") || job.Labels[kruise.PodRevisionLabelKey] != hash ||
			owner.APIVersion != "apps.kruise.io/v1beta1" || owner.Kind != "ImageListPullJob" ||
			!ptr.Deref(owner.BlockOwnerDeletion, false) {
			t.Errorf("metadata of the job: %+v", job.ObjectMeta)
		}
	}
	b.Until(func() error {
		if b.refresh(list); list.Labels[kruise.PodRevisionLabelKey] != hash {
			return fmt.Errorf("labels %v", list.Labels)
		}
		return nil
	})
	b.Still()
	if asked := b.Asked(); len(asked) != 4 || len(requests.About(asked, "POST imagepulljobs 201")) != 2 ||
		len(requests.About(asked, "/status 200")) != 1 {
		t.Errorf("the beginning took %q", asked)
	}
	b.does(jobs["nginx:1"], 3, 1, 1, 0)
	b.counts(list, 1, 0, 0, 2, false)
	b.does(jobs["nginx:1"], 3, 0, 3, 0)
	b.counts(list, 0, 1, 1, 2, false)
	b.does(jobs["redis:1"], 3, 0, 3, 0)
	b.counts(list, 0, 2, 2, 2, true)
	b.Still()
	if asked := b.Asked(); len(asked) != 3 || len(requests.About(asked, "PATCH imagelistpulljobs/ahead/status 200")) != 3 {
		t.Errorf("the way to the end took %q", asked)
	}
	b.Until(func() error {
		if told := b.events(list, "Successful create ImagePullJob"); !slices.Equal(told, []string{
			"Normal created ImagePullJobs: 2 1",
		}) {
			return fmt.Errorf("told %q", told)
		}
		return nil
	})
}

// Failed images are reported in the order of the list, and what is written once is not written again.
func TestFailedImages(t *testing.T) {
	b := start(t)
	list := b.create("ahead", []string{"c:1", "a:1", "b:1"})
	jobs := b.hasJobs(list, "a:1", "b:1", "c:1")
	b.does(jobs["a:1"], 2, 0, 2, 0)
	b.does(jobs["b:1"], 2, 1, 0, 1)
	b.does(jobs["c:1"], 2, 0, 1, 1)
	b.counts(list, 1, 2, 1, 3, false)
	var failed []string
	for _, f := range list.Status.FailedImageStatuses {
		failed = append(failed, f.Name)
		if f.ImagePullJob != jobs[f.Name].Name || !strings.Contains(f.Message, f.ImagePullJob) {
			t.Errorf("failed: %+v", f)
		}
	}
	if !slices.Equal(failed, []string{"c:1", "b:1"}) {
		t.Errorf("failed %q", failed)
	}
	b.Still()
	b.Asked()
	for range 3 { // the same news in other words
		b.change(list, func(l *v1beta1.ImageListPullJob) { l.Annotations = map[string]string{"now": b.now().String()} })
		job := jobs["b:1"]
		b.refresh(job)
		job.Status.Message += "."
		if err := b.Client.Status().Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	b.Still()
	if asked := b.Asked(); len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
}

// An image more is one job more, one less is one less, and another template is another job for each.
func TestListChanges(t *testing.T) {
	b := start(t)
	list := b.create("ahead", []string{"nginx:1", "redis:1"})
	first := b.hasJobs(list, "nginx:1", "redis:1")
	b.does(first["nginx:1"], 1, 0, 1, 0)
	b.counts(list, 0, 1, 1, 2, false)
	b.Still()
	b.Asked()
	b.change(list, func(l *v1beta1.ImageListPullJob) { l.Spec.Images = []string{"nginx:1", "mysql:1"} })
	second := b.hasJobs(list, "nginx:1", "mysql:1")
	b.counts(list, 0, 1, 1, 2, false)
	b.Still()
	if asked := b.Asked(); second["nginx:1"].UID != first["nginx:1"].UID || len(requests.About(asked, "POST")) != 1 ||
		len(requests.About(asked, "DELETE")) != 1 {
		t.Errorf("one image for another took %q", asked)
	}
	b.change(list, func(l *v1beta1.ImageListPullJob) { l.Spec.Parallelism = ptr.To(intstr.FromInt32(7)) })
	b.Until(func() error {
		jobs, err := b.jobs(list)
		if err != nil || len(jobs) != 2 || jobs["nginx:1"].UID == first["nginx:1"].UID ||
			jobs["mysql:1"].UID == second["mysql:1"].UID {
			return fmt.Errorf("jobs %v: %w", jobs, err)
		}
		return nil
	})
	b.counts(list, 0, 0, 0, 2, false)
	b.Still()
	if asked := b.Asked(); len(requests.About(asked, "POST")) != 2 || len(requests.About(asked, "DELETE")) != 2 {
		t.Errorf("another template took %q", asked)
	}
	b.Until(func() error {
		if told := b.events(list, "Successful delete ImagePullJob"); len(told) != 2 {
			return fmt.Errorf("told %q", told)
		}
		return nil
	})
	// And back again, before and after: the names are those of the first jobs, which are gone.
	b.change(list, func(l *v1beta1.ImageListPullJob) { l.Spec.Parallelism = nil })
	b.Until(func() error {
		jobs, err := b.jobs(list)
		if err != nil || len(jobs) != 2 || jobs["nginx:1"].Spec.Parallelism != nil ||
			jobs["nginx:1"].UID == first["nginx:1"].UID {
			return fmt.Errorf("jobs %v: %w", jobs, err)
		}
		return nil
	})
}

// A job of an old release has no hash. With the same template it is as good as one that has.
func TestJobsOfOldReleases(t *testing.T) {
	b := newBench(t)
	list := b.create("ahead", []string{"nginx:1", "redis:1"})
	old := func(image string, timeout int32) *v1beta1.ImagePullJob {
		job := &v1beta1.ImagePullJob{}
		job.Namespace, job.GenerateName = b.Namespace, "ahead-"
		job.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(list, v1beta1.GroupVersion.WithKind("ImageListPullJob")),
		}
		job.Spec.Image, job.Spec.PullPolicy = image, &v1beta1.PullPolicy{TimeoutSeconds: &timeout}
		if err := b.Client.Create(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		return job
	}
	same, other := old("nginx:1", 600), old("redis:1", 5)
	b.start(plain)
	b.Until(func() error {
		jobs, err := b.jobs(list)
		if err != nil || len(jobs) != 2 || jobs["redis:1"].UID == other.UID || jobs["nginx:1"].UID != same.UID {
			return fmt.Errorf("jobs %v: %w", jobs, err)
		}
		return nil
	})
}

// A list leaves some time after its end, and not before. Until then nothing changes it.
func TestTimeToLive(t *testing.T) {
	b := start(t)
	limited := func(l *v1beta1.ImageListPullJob) {
		l.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](3600)
	}
	list, stays := b.create("ahead", []string{"nginx:1"}, limited), b.create("stays", []string{"nginx:1"})
	for _, l := range []*v1beta1.ImageListPullJob{list, stays} {
		b.does(b.hasJobs(l, "nginx:1")["nginx:1"], 1, 0, 1, 0)
		b.counts(l, 0, 1, 1, 1, true)
	}
	b.change(list, func(l *v1beta1.ImageListPullJob) { l.Spec.Images = []string{"redis:1"} })
	b.Still()
	b.hasJobs(list, "nginx:1")
	b.counts(list, 0, 1, 1, 1, true)
	b.Asked()
	b.ahead.Store(int64(2 * time.Hour))
	for _, l := range []*v1beta1.ImageListPullJob{list, stays} {
		b.change(l, func(l *v1beta1.ImageListPullJob) { l.Annotations = map[string]string{"now": "later"} })
	}
	b.gone(list)
	b.Still()
	b.refresh(stays)
	if asked := b.Asked(); len(asked) != 1 || len(requests.About(asked, "DELETE imagelistpulljobs/ahead 200")) != 1 {
		t.Errorf("asked %q", asked)
	}
	// By itself, where no client touches it.
	b.ahead.Store(0)
	soon := b.create("soon", []string{"nginx:1"}, func(l *v1beta1.ImageListPullJob) {
		l.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](1)
	})
	b.does(b.hasJobs(soon, "nginx:1")["nginx:1"], 1, 0, 1, 0)
	b.gone(soon)
}

// A list that never completes does not, and one that is being deleted makes nothing.
func TestNever(t *testing.T) {
	b := start(t)
	list := b.create("ahead", []string{"nginx:1", "redis:1"}, func(l *v1beta1.ImageListPullJob) {
		l.Spec.CompletionPolicy.Type = v1beta1.Never
	})
	jobs := b.hasJobs(list, "nginx:1", "redis:1")
	b.does(jobs["nginx:1"], 1, 0, 1, 0)
	b.does(jobs["redis:1"], 1, 0, 0, 1)
	b.counts(list, 0, 2, 1, 2, false)
	leaving := b.create("leaving", []string{"nginx:1"}, func(l *v1beta1.ImageListPullJob) {
		l.Finalizers = []string{"test.kruisekit.dev/hold"}
	})
	job := b.hasJobs(leaving, "nginx:1")["nginx:1"]
	if err := b.Client.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	b.Still()
	if err := b.Client.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	b.Still()
	b.hasJobs(leaving)
	b.change(leaving, func(l *v1beta1.ImageListPullJob) { l.Finalizers = nil })
}

// A job that a client deletes is made again, also while the old one is still on its way out.
func TestDeletedJob(t *testing.T) {
	b := start(t)
	list := b.create("ahead", []string{"nginx:1"})
	job := b.hasJobs(list, "nginx:1")["nginx:1"]
	job.Finalizers = []string{v1beta1.ImagePullJobFinalizerKey}
	if err := b.Client.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if err := b.Client.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	b.Still()
	b.Asked()
	b.change(list, func(l *v1beta1.ImageListPullJob) { l.Annotations = map[string]string{"touched": ""} })
	b.Still()
	if asked := b.Asked(); len(asked) > 0 {
		t.Errorf("while it waits it asks %q", asked)
	}
	b.refresh(job)
	job.Finalizers = nil
	if err := b.Client.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	b.Until(func() error {
		jobs, err := b.jobs(list)
		if err != nil || jobs["nginx:1"] == nil || jobs["nginx:1"].UID == job.UID {
			return fmt.Errorf("jobs %v: %w", jobs, err)
		}
		return nil
	})
}
