//go:build envtest

package cloneset_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// jobs of the namespace, as "image parallelism".
func (b *bench) jobs() []string {
	b.Helper()
	var list v1beta1.ImagePullJobList
	if err := b.client.List(b.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.Fatal(err)
	}
	var jobs []string
	for _, job := range list.Items {
		jobs = append(jobs, fmt.Sprintf("%s %s", job.Spec.Image, job.Spec.Parallelism))
	}
	return jobs
}

// decision is the label of pre-download that the update revision of a set has.
func (b *bench) decision(set *v1beta1.CloneSet) string {
	b.Helper()
	var rev appsv1.ControllerRevision
	if err := b.client.Get(b.Context(), client.ObjectKey{Namespace: b.namespace, Name: set.Status.UpdateRevision}, &rev); err != nil {
		b.Fatal(err)
	}
	for _, label := range []string{v1beta1.ImagePreDownloadCreatedKey, v1beta1.ImagePreDownloadIgnoredKey} {
		if rev.Labels[label] == "true" {
			return label
		}
	}
	return ""
}

func partition(n int) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(int32(n)))
	}
}

// While the rollout waits, one job pulls the new image, as many nodes at a time as the set says. It goes when another revision
// comes, and when the rollout is done.
func TestPreDownload(t *testing.T) {
	b := start(t, cloneset.Options{PreDownload: true})
	set := b.create("web", 5, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.ProgressDeadlineSeconds = ptr.To[int32](600)
	})
	b.eventually(set, settled)
	if got := b.decision(set); got != "" {
		t.Errorf("the first revision says %s: there is nothing to update", got)
	}
	b.requests.take()
	b.change(set, func(s *v1beta1.CloneSet) {
		image("web:2")(s)
		partition(1)(s)
		s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &pub.InPlaceUpdateStrategy{ImagePreDownloadParallelism: ptr.To(intstr.FromString("2"))}
	})
	b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if n := len(set.Status.Conditions); n != 1 || set.Status.Conditions[0].Reason != "ProgressPartitionAvailable" {
			return fmt.Errorf("conditions %v", set.Status.Conditions)
		}
		return nil
	})
	b.still()
	if got := fmt.Sprint(b.jobs()); got != "[web:2 2]" {
		t.Errorf("jobs %s, want one of web:2", got)
	}
	if got := b.decision(set); got != v1beta1.ImagePreDownloadCreatedKey {
		t.Errorf("the revision says %q", got)
	}
	all := b.requests.take()
	if made := about(all, "POST", "/imagepulljobs"); len(made) != 1 {
		t.Errorf("creates: %v, want one", made)
	}
	if read := about(all, "GET"); len(read) != 0 {
		t.Errorf("reads past the cache: %v", read)
	}

	// A third revision has jobs of its own, and those of the second go.
	b.change(set, image("web:3"))
	b.eventually(set, func(*v1beta1.CloneSet, []corev1.Pod) error {
		if got := fmt.Sprint(b.jobs()); got != "[web:3 2]" {
			return errors.New("jobs " + got)
		}
		return nil
	})
	b.change(set, partition(0))
	b.eventually(set, settled)
	b.eventually(set, func(*v1beta1.CloneSet, []corev1.Pod) error {
		if left := b.jobs(); len(left) > 0 {
			return fmt.Errorf("jobs %v are left", left)
		}
		return nil
	})
	b.still()
	if deletes := about(b.requests.take(), "DELETE", "/imagepulljobs"); len(deletes) != 2 {
		t.Errorf("%v, want two", deletes)
	}
}

func TestNoPreDownload(t *testing.T) {
	b := start(t, cloneset.Options{PreDownload: true})
	cases := map[string]struct {
		why      string
		replicas int32
		base     func(*v1beta1.CloneSet)
		change   func(*v1beta1.CloneSet)
		want     string
	}{
		"few":      {"they are done before the job begins", 3, inPlace, image("web:2"), v1beta1.ImagePreDownloadIgnoredKey},
		"recreate": {"the new pods pull", 4, nil, image("web:2"), v1beta1.ImagePreDownloadIgnoredKey},
		"blocked":  {"the new pods pull", 4, inPlace, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.HostNetwork = true }, v1beta1.ImagePreDownloadIgnoredKey},
		"no image": {"decided, with no job", 4, inPlace, func(s *v1beta1.CloneSet) { s.Spec.Template.Labels["x"] = "y" }, v1beta1.ImagePreDownloadCreatedKey},
		"at once": {"nobody waits", 4, inPlace, func(s *v1beta1.CloneSet) {
			image("web:2")(s)
			s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("100%"))
		}, v1beta1.ImagePreDownloadIgnoredKey},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := b.create("web-"+strings.ReplaceAll(name, " ", "-"), c.replicas, c.base)
			b.eventually(set, settled)
			first := set.Status.UpdateRevision
			b.change(set, c.change)
			b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				if set.Status.UpdateRevision == first {
					return errors.New("no new revision")
				}
				return settled(set, pods)
			})
			if got := b.decision(set); got != c.want {
				t.Errorf("%s: the revision says %q, want %q", c.why, got, c.want)
			}
			if made := about(b.requests.take(), "POST", "/imagepulljobs"); len(made) > 0 {
				t.Errorf("%s: %v", c.why, made)
			}
		})
	}
}

// The job is made when as many updated pods are ready as asked for.
func TestPreDownloadLater(t *testing.T) {
	b := start(t, cloneset.Options{PreDownload: true})
	set := b.create("web", 5, inPlace)
	b.eventually(set, settled)
	b.change(set, func(s *v1beta1.CloneSet) {
		image("web:2")(s)
		partition(4)(s)
		s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &pub.InPlaceUpdateStrategy{ImagePreDownloadMinUpdatedReadyPods: ptr.To[int32](2)}
	})
	ready := func(n int32) func(*v1beta1.CloneSet, []corev1.Pod) error {
		return func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
			if set.Status.UpdatedReadyReplicas != n || set.Status.ObservedGeneration != set.Generation {
				return fmt.Errorf("status %+v", set.Status)
			}
			return nil
		}
	}
	b.eventually(set, ready(1))
	b.still()
	if got := b.decision(set); got != "" || len(b.jobs()) > 0 {
		t.Errorf("one is ready, two are asked for: the revision says %q, jobs %v", got, b.jobs())
	}
	b.change(set, partition(3))
	b.eventually(set, ready(2))
	b.eventually(set, func(*v1beta1.CloneSet, []corev1.Pod) error {
		if n := len(b.jobs()); n != 1 {
			return fmt.Errorf("%d jobs", n)
		}
		return nil
	})
}

// A job that cannot be made delays nothing: refused, it is left; out of order, it is tried again.
func TestPreDownloadFails(t *testing.T) {
	kind := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "imagepulljobs"}
	cases := map[string]struct {
		why  string
		err  error
		jobs int
	}{
		"refused":      {"a quota, or a webhook that says no", apierrors.NewForbidden(kind, "", errors.New("no more of them")), 0},
		"out of order": {"a webhook that does not answer", apierrors.NewInternalError(errors.New("no answer")), 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			failed := 0
			events := record.NewFakeRecorder(1000)
			b := startWith(t, cloneset.Options{PreDownload: true, Recorder: events}, func(inner client.WithWatch) client.Client {
				return interceptor.NewClient(inner, interceptor.Funcs{Create: func(ctx context.Context, inner client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if _, is := o.(*v1beta1.ImagePullJob); is && failed < 2 {
						failed++
						return c.err
					}
					return inner.Create(ctx, o, opts...)
				}})
			})
			set := b.create("web", 5, inPlace)
			b.eventually(set, settled)
			b.change(set, func(s *v1beta1.CloneSet) {
				image("web:2")(s)
				partition(1)(s)
			})
			b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
				if set.Status.UpdatedAvailableReplicas != 4 || b.decision(set) != v1beta1.ImagePreDownloadCreatedKey || len(b.jobs()) != c.jobs {
					return fmt.Errorf("%s: status %+v, the revision says %q, jobs %v", c.why, set.Status, b.decision(set), b.jobs())
				}
				return nil
			})
			told := false
			for len(events.Events) > 0 {
				told = strings.Contains(<-events.Events, "FailedCreateImagePullJob") || told
			}
			if !told {
				t.Error("nobody was told")
			}
		})
	}
}

// Skipping what does not matter must not skip what does.
func TestSkipQuiet(t *testing.T) {
	b := start(t, cloneset.Options{SkipQuiet: true})
	set := b.create("web", 5, inPlace)
	b.eventually(set, settled)
	b.change(set, image("web:2"))
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		for i := range pods {
			if s := pods[i].Status.ContainerStatuses[0]; s.Image != "web:2" || pods[i].Labels[pub.LifecycleStateKey] != string(pub.LifecycleStateNormal) {
				return fmt.Errorf("%s runs %s in state %s", pods[i].Name, s.Image, pods[i].Labels[pub.LifecycleStateKey])
			}
		}
		return settled(set, pods)
	})
}
