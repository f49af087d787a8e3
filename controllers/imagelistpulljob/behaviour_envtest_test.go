//go:build envtest

package imagelistpulljob_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		if told := b.Events(list, "Successful create ImagePullJob"); !slices.Equal(told,
			[]string{"created ImagePullJobs: 2 (1)"}) {
			return fmt.Errorf("told %q", told)
		}
		return nil
	})
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
		if told := b.Events(list, "Successful delete ImagePullJob"); len(told) != 2 {
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

// The API server stores numbers that are too large for Go. Neither such a list nor such a job stops the others.
func TestMalformed(t *testing.T) {
	b := start(t)
	untyped := func(kind, name, spec string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		text := fmt.Sprintf(
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":%q,"metadata":{"namespace":%q,"name":%q},"spec":%s}`,
			kind, b.Namespace, name, spec)
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return o
	}
	list := untyped("ImageListPullJob", "odd", `{"images":["nginx:1"],"completionPolicy":{},"parallelism":99999999999}`)
	job := untyped("ImagePullJob", "odd", `{"image":"nginx:1","completionPolicy":{},"parallelism":99999999999}`)
	for _, o := range []*unstructured.Unstructured{list, job} {
		if err := b.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	b.Until(func() error {
		told := b.Events(list, "InvalidSpec")
		if len(told) != 1 || !strings.Contains(told[0], "parallelism") && !strings.Contains(told[0], "99999999999") {
			return fmt.Errorf("told %q", told)
		}
		return nil
	})
	good := b.create("good", []string{"nginx:1"})
	mine := &metav1.PartialObjectMetadata{}
	b.Until(func() error {
		all := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{
			APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJobList",
		}}
		if err := b.Client.List(t.Context(), all, client.InNamespace(b.Namespace)); err != nil {
			return err
		}
		for i := range all.Items {
			if metav1.IsControlledBy(&all.Items[i], good) {
				mine = &all.Items[i]
				return nil
			}
		}
		return errors.New("no job")
	})
	// Neither does one of its own, which is replaced.
	raw := untyped("ImagePullJob", mine.Name, "{}")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parallelism":99999999999}}`))
	if err := b.Client.Patch(t.Context(), raw, patch); err != nil {
		t.Fatal(err)
	}
	b.Until(func() error {
		fresh := untyped("ImagePullJob", mine.Name, "{}")
		if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(mine), fresh); err != nil {
			return err
		}
		if fresh.GetUID() == mine.UID {
			return errors.New("the odd job is still there")
		}
		return nil
	})
}
