package imagepull_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

func listJob(images ...string) *v1beta1.ImageListPullJob {
	l := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pull-list", UID: "uid-list"}}
	l.Spec.Images = images
	l.Spec.Parallelism = atMost(2)
	l.Spec.CompletionPolicy.TTLSecondsAfterFinished = seconds(3000)
	l.Default()
	return l
}

// child is a job of the list, as the webhook leaves it.
func child(
	name, image string, l *v1beta1.ImageListPullJob, change ...func(*v1beta1.ImagePullJob),
) *v1beta1.ImagePullJob {
	j := pullJob(name, image)
	j.Spec.ImagePullJobTemplate = *l.Spec.ImagePullJobTemplate.DeepCopy()
	j.Default()
	j.OwnerReferences = []metav1.OwnerReference{{UID: l.UID}}
	j.Labels = map[string]string{"controller-revision-hash": imagepull.TemplateHash(l.Spec.ImagePullJobTemplate)}
	for _, c := range change {
		c(j)
	}
	return j
}

func at(desired, active, succeeded, failed int32) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) {
		j.Status = v1beta1.ImagePullJobStatus{
			StartTime: ago(time.Minute), Desired: desired, Active: active, Succeeded: succeeded, Failed: failed,
		}
	}
}

// The hash of a list that the reference made, with the same template.
func TestTemplateHash(t *testing.T) {
	if got := imagepull.TemplateHash(listJob().Spec.ImagePullJobTemplate); got != "84bd89b7b4" {
		t.Error(got)
	}
}

func TestList(t *testing.T) {
	l := listJob("nginx:1", "redis:1")
	other := listJob("nginx:1", "redis:1")
	other.Spec.Parallelism = atMost(7)
	unlabelled := func(j *v1beta1.ImagePullJob) { j.Labels = nil }
	bornAgo := func(d time.Duration) func(*v1beta1.ImagePullJob) {
		return func(j *v1beta1.ImagePullJob) { j.CreationTimestamp = *ago(d) }
	}
	done := at(3, 0, 3, 0)
	for name, test := range map[string]struct {
		list   *v1beta1.ImageListPullJob
		jobs   []*v1beta1.ImagePullJob
		create string
		remove string
		status string // active/completed/succeeded of desired
		ended  bool
		notes  string
	}{
		"two images": {l, nil, "nginx:1 redis:1", "", "0/0/0 of 2", false, ""},
		"both done": {
			list:   l,
			jobs:   list(child("b", "redis:1", l, done), child("a", "nginx:1", l, done)),
			status: "0/2/2 of 2",
			ended:  true,
		},
		"one image is new": {
			list:   listJob("nginx:1", "redis:1", "mysql"),
			jobs:   list(child("a", "nginx:1", l, done), child("b", "redis:1", l, done)),
			create: "mysql",
			status: "0/2/2 of 3",
		},
		"one image is gone": {
			list:   listJob("redis:1"),
			jobs:   list(child("a", "nginx:1", l, done), child("b", "redis:1", l, at(3, 2, 0, 0))),
			remove: "a",
			status: "1/0/0 of 1",
			notes:  "Replaced a",
		},
		"another template": {
			list:   l,
			jobs:   list(child("a", "nginx:1", other, done), child("b", "redis:1", other, done)),
			create: "nginx:1 redis:1",
			remove: "a b",
			status: "0/0/0 of 2",
			notes:  "Replaced a, Replaced b",
		},
		"no hash, the same template": {
			list:   l,
			jobs:   list(child("a", "nginx:1", l, done, unlabelled), child("b", "redis:1", l, done)),
			status: "0/2/2 of 2",
			ended:  true,
		},
		"no hash, another template": {
			list:   l,
			jobs:   list(child("a", "nginx:1", other, done, unlabelled), child("b", "redis:1", l, done)),
			create: "nginx:1",
			remove: "a",
			status: "0/1/1 of 2",
			notes:  "Replaced a",
		},
		"twice the same": {
			list: l,
			jobs: list(child("a", "nginx:1", l, done, bornAgo(time.Minute)), child("c", "nginx:1", l, bornAgo(time.Hour)),
				child("b", "redis:1", l, done)),
			remove: "a",
			status: "0/1/1 of 2",
			notes:  "Replaced a",
		},
		"of somebody else": {
			list:   l,
			jobs:   list(child("a", "nginx:1", l, done, func(j *v1beta1.ImagePullJob) { j.OwnerReferences[0].UID = "x" })),
			create: "nginx:1 redis:1",
			status: "0/0/0 of 2",
		},
		"being deleted": {
			list:   l,
			jobs:   list(child("a", "nginx:1", l, done, func(j *v1beta1.ImagePullJob) { j.DeletionTimestamp = ago(0) })),
			create: "nginx:1 redis:1",
			status: "0/0/0 of 2",
		},
		"no images": {listJob(), nil, "", "", "0/0/0 of 0", true, ""},
		"an image that no registry can have": {
			list: listJob("a b", "redis:1"), create: "redis:1", status: "0/0/0 of 2", notes: "BadImage a b",
		},
		"an image twice": {listJob("redis:1", "redis:1"), nil, "redis:1", "", "0/0/0 of 2", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.list.DeepCopy()
			plan := imagepull.List(test.list, test.jobs, noon())
			if diff := cmp.Diff(before, test.list); diff != "" {
				t.Fatalf("the list has changed:\n%s", diff)
			}
			var create, remove []string
			for _, j := range plan.Create {
				create = append(create, j.Spec.Image)
			}
			for _, j := range plan.DeleteJobs {
				remove = append(remove, j.Name)
			}
			s := plan.Status
			status := fmt.Sprintf("%d/%d/%d of %d", s.Active, s.Completed, s.Succeeded, s.Desired)
			if strings.Join(create, " ") != test.create || strings.Join(remove, " ") != test.remove || status != test.status ||
				(s.CompletionTime != nil) != test.ended {
				t.Errorf("creates %v, deletes %v, %s, ended at %v", create, remove, status, s.CompletionTime)
			}
			if codes(plan.Notes) != test.notes || !s.StartTime.Equal(ago(0)) {
				t.Errorf("notes %q, started at %v", codes(plan.Notes), s.StartTime)
			}
		})
	}
}

func TestListCreates(t *testing.T) {
	l := listJob("nginx:1.23.1")
	got := imagepull.List(l, nil, noon()).Create[0]
	want := &v1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "pull-list-", Namespace: "shop", Labels: map[string]string{"controller-revision-hash": "84bd89b7b4"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: "ImageListPullJob", Name: "pull-list", UID: "uid-list",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: v1beta1.ImagePullJobSpec{Image: "nginx:1.23.1", ImagePullJobTemplate: l.Spec.ImagePullJobTemplate},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	got.UID = types.UID("x")
	*got.Spec.Parallelism = *atMost(9)
	if l.Spec.Parallelism.IntVal != 2 {
		t.Error("the job shares memory with the list")
	}
	if again := imagepull.List(l,
		list(child("a", "nginx:1.23.1", l)), noon()); len(again.Create)+len(again.DeleteJobs) > 0 {
		t.Error(jsonOf(again))
	}
}

func TestListFailures(t *testing.T) {
	l := listJob("nginx:1", "redis:1", "mysql:1")
	jobs := list(child("c", "mysql:1", l, at(2, 0, 1, 1)), child("b", "redis:1", l, at(2, 1, 1, 0)),
		child("a", "nginx:1", l, at(2, 0, 2, 0)))
	jobs = append(jobs, child("d", "gone:1", l, at(2, 0, 0, 2)))
	want := v1beta1.ImageListPullJobStatus{
		StartTime: ago(time.Hour), Desired: 3, Active: 1, Completed: 2, Succeeded: 1,
		FailedImageStatuses: []*v1beta1.FailedImageStatus{{
			ImagePullJob: "c", Name: "mysql:1", Message: "status.failedNodes of ImagePullJob c names the nodes",
		}},
	}
	l.Status.StartTime = ago(time.Hour)
	if diff := cmp.Diff(want, imagepull.List(l, jobs, noon()).Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	l.Spec.CompletionPolicy.Type = v1beta1.Never
	endless := list(child("a", "nginx:1", l, at(1, 0, 1, 0)), child("b", "redis:1", l, at(1, 0, 0, 1)),
		child("c", "mysql:1", l, at(0, 0, 0, 0)))
	if s := imagepull.List(l, endless, noon()).Status; s.Completed != 3 || s.CompletionTime != nil ||
		len(s.FailedImageStatuses) != 1 {
		t.Errorf("never ends: %s", jsonOf(s))
	}
}

func TestListEnded(t *testing.T) {
	for name, test := range map[string]struct {
		ttl   *int32
		gone  bool
		after time.Duration
	}{
		"for ever": {nil, false, 0},
		"later":    {seconds(20), false, 10 * time.Second},
		"now":      {seconds(10), true, 0},
		"before":   {seconds(math.MinInt32), true, 0},
	} {
		l := listJob("nginx:1")
		l.Spec.CompletionPolicy.TTLSecondsAfterFinished = test.ttl
		l.Status = v1beta1.ImageListPullJobStatus{CompletionTime: ago(10 * time.Second), Desired: 7}
		want := imagepull.ListPlan{
			Hash:         imagepull.TemplateHash(l.Spec.ImagePullJobTemplate),
			Status:       l.Status,
			Delete:       test.gone,
			RequeueAfter: test.after,
		}
		if diff := cmp.Diff(want, imagepull.List(l, nil, noon())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
