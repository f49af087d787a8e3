//go:build envtest

package imagelistpulljob_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// jobs of a list by image. Two of one image are an error.
func (b *bench) jobs(list *v1beta1.ImageListPullJob) (map[string]*v1beta1.ImagePullJob, error) {
	b.Helper()
	var all v1beta1.ImagePullJobList
	if err := b.client.List(b.Context(), &all, client.InNamespace(b.namespace)); err != nil {
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
	b.until(func() (err error) {
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
	job.Status = v1beta1.ImagePullJobStatus{StartTime: &now, Desired: desired, Active: active, Succeeded: succeeded, Failed: failed, Message: "written by a test"}
	if desired == succeeded+failed {
		job.Status.CompletionTime = &now
	}
	if err := b.client.Status().Patch(b.Context(), job, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// counts waits for a status: active, completed and succeeded of desired, and whether the list has ended.
func (b *bench) counts(list *v1beta1.ImageListPullJob, active, completed, succeeded, desired int32, ended bool) {
	b.Helper()
	b.until(func() error {
		b.refresh(list)
		s := list.Status
		if s.StartTime == nil || s.Active != active || s.Completed != completed || s.Succeeded != succeeded || s.Desired != desired || (s.CompletionTime != nil) != ended {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
}

func (b *bench) until(check func() error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		b.Fatalf("%v; last: %v\nrequests:\n%s", err, last, strings.Join(b.requests.take(), "\n"))
	}
}

// gone waits until there is no such object.
func (b *bench) gone(o client.Object) {
	b.Helper()
	b.until(func() error {
		if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil || err == nil {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}

// events of a list with a reason.
func (b *bench) events(list *v1beta1.ImageListPullJob, reason string) []string {
	b.Helper()
	var all corev1.EventList
	if err := b.client.List(b.Context(), &all, client.InNamespace(b.namespace)); err != nil {
		b.Fatal(err)
	}
	var some []string
	for _, e := range all.Items {
		if e.InvolvedObject.UID == list.UID && e.Reason == reason {
			some = append(some, fmt.Sprintf("%s %s %d", e.Type, e.Message, max(e.Count, 1)))
		}
	}
	slices.Sort(some)
	return some
}

// still waits until the reconciler asks for nothing any more.
func (b *bench) still() {
	b.Helper()
	for quiet := 0; quiet < 5; quiet++ {
		before := b.requests.count()
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // that nothing happens is the thing to see
		if b.requests.count() != before {
			quiet = 0
		}
	}
}

// requests records what the reconciler asks of the API server, but for watches, first lists and events.
type requests struct {
	mu  sync.Mutex
	all []string
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (r *requests) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		path, query := request.URL.Path, request.URL.Query()
		if query.Has("watch") || request.Method == http.MethodGet && query.Has("limit") || !strings.Contains(path, "pulljobs") {
			return response, err
		}
		code := 0
		if response != nil {
			code = response.StatusCode
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, fmt.Sprintf("%s %s %d", request.Method, path[strings.LastIndex(path, "image"):], code))
		return response, err
	})
}

// take gives the requests since the last time.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// about are the requests that hold all of some words.
func about(all []string, words ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(request string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(request, word) })
	})
}
