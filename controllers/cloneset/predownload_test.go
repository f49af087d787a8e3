package cloneset_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/requests"
)

// A rollout that is too small, too quick, or not in place has no pull job. Its revision records that this is decided.
func TestNoPreDownload(t *testing.T) {
	m := newModel(t, cloneset.Options{PreDownload: true})
	cases := map[string]struct {
		why      string
		replicas int32
		base     func(*v1beta1.CloneSet)
		change   func(*v1beta1.CloneSet)
		want     string
	}{
		"few": {
			why:      "the rollout is complete before the job starts",
			replicas: 3,
			base:     inPlace,
			change:   image("web:2"),
			want:     v1beta1.ImagePreDownloadIgnoredKey,
		},
		"recreate": {"the new pods pull", 4, nil, image("web:2"), v1beta1.ImagePreDownloadIgnoredKey},
		"blocked": {
			why:      "the new pods pull",
			replicas: 4,
			base:     inPlace,
			change:   func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.HostNetwork = true },
			want:     v1beta1.ImagePreDownloadIgnoredKey,
		},
		"no image": {
			why:      "there is nothing to pull",
			replicas: 4,
			base:     inPlace,
			change:   func(s *v1beta1.CloneSet) { s.Spec.Template.Labels["x"] = "y" },
			want:     v1beta1.ImagePreDownloadCreatedKey,
		},
		"at once": {"all pods are updated at once", 4, inPlace, func(s *v1beta1.CloneSet) {
			image("web:2")(s)
			s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("100%"))
		}, v1beta1.ImagePreDownloadIgnoredKey},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := m.create("web-"+strings.ReplaceAll(name, " ", "-"), c.replicas, c.base)
			m.eventually(set, settled)
			first := set.Status.UpdateRevision
			m.change(set, c.change)
			m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				if set.Status.UpdateRevision == first {
					return errors.New("no new revision")
				}
				return settled(set, pods)
			})
			if got := m.decision(set); got != c.want {
				t.Errorf("%s: the revision has %q, want %q", c.why, got, c.want)
			}
			if made := requests.About(m.Server.Requests(), "POST imagepulljobs/"); len(made) > 0 {
				t.Errorf("%s: %v", c.why, made)
			}
		})
	}
}

// The job is created when as many updated pods are ready as the set asks for.
func TestPreDownloadLater(t *testing.T) {
	m := newModel(t, cloneset.Options{PreDownload: true})
	set := m.create("web", 5, inPlace)
	m.eventually(set, settled)
	m.change(set, func(s *v1beta1.CloneSet) {
		image("web:2")(s)
		partition(4)(s)
		s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{
			ImagePreDownloadMinUpdatedReadyPods: ptr.To[int32](2),
		}
	})
	ready := func(n int32) func(*v1beta1.CloneSet, []corev1.Pod) error {
		return func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
			if set.Status.UpdatedReadyReplicas != n || set.Status.ObservedGeneration != set.Generation {
				return fmt.Errorf("status %+v", set.Status)
			}
			return nil
		}
	}
	m.eventually(set, ready(1))
	m.Still()
	if got := m.decision(set); got != "" || len(m.jobs()) > 0 {
		t.Errorf("one is ready, two are asked for: the revision has %q, jobs %v", got, m.jobs())
	}
	m.change(set, partition(3))
	m.eventually(set, ready(2))
	m.eventually(set, func(*v1beta1.CloneSet, []corev1.Pod) error {
		if n := len(m.jobs()); n != 1 {
			return fmt.Errorf("%d jobs", n)
		}
		return nil
	})
}

// A job that cannot be created delays no pod. A rejected job is not tried again, a failed request is.
func TestPreDownloadFails(t *testing.T) {
	kind := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "imagepulljobs"}
	cases := map[string]struct {
		why  string
		err  error
		jobs int
	}{
		"rejected": {
			"a quota, or a webhook that rejects", apierrors.NewForbidden(kind, "", errors.New("no more of them")), 0,
		},
		"failed": {"a webhook that does not answer", apierrors.NewInternalError(errors.New("no answer")), 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			failed := 0
			m := newModelWith(t, cloneset.Options{PreDownload: true}, func(inner client.WithWatch) client.WithWatch {
				return interceptor.NewClient(inner, interceptor.Funcs{
					Create: func(ctx context.Context, inner client.WithWatch, o client.Object, opts ...client.CreateOption) error {
						if _, is := o.(*v1beta1.ImagePullJob); is && failed < 2 {
							failed++
							return c.err
						}
						return inner.Create(ctx, o, opts...)
					},
				})
			})
			set := m.create("web", 5, inPlace)
			m.eventually(set, settled)
			m.change(set, func(s *v1beta1.CloneSet) {
				image("web:2")(s)
				partition(1)(s)
			})
			m.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
				if set.Status.UpdatedAvailableReplicas != 4 || m.decision(set) != v1beta1.ImagePreDownloadCreatedKey ||
					len(m.jobs()) != c.jobs {
					return fmt.Errorf("%s: status %+v, the revision has %q, jobs %v", c.why, set.Status, m.decision(set), m.jobs())
				}
				return nil
			})
			if len(m.Server.Events(set, "FailedCreateImagePullJob")) == 0 {
				t.Error("no event")
			}
		})
	}
}
