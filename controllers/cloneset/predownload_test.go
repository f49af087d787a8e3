package cloneset_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

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
