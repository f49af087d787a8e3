package cloneset_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// An event is emitted once also while the cache shows the set as it was before its status was written, and again when
// its reason comes back.
func TestEventsOfLaggingCache(t *testing.T) {
	onlyInPlace := func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	}
	for name, c := range map[string]struct {
		why           string
		set           func(*v1beta1.CloneSet)
		cause, remove func(*v1beta1.CloneSet)
		event         string
	}{
		"not possible in place": {
			"a running container keeps its environment", onlyInPlace,
			func(s *v1beta1.CloneSet) {
				s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
			},
			func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Env = nil }, "FailedUpdatePodInPlace",
		},
		"invalid bound": {
			"the bound cannot be parsed", inPlace,
			func(s *v1beta1.CloneSet) {
				s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("5"))
			},
			func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil }, "InvalidSpec",
		},
		"limited": {
			"no pod more may be unavailable", inPlace,
			func(s *v1beta1.CloneSet) {
				s.Spec.Replicas, s.Spec.ScaleStrategy.MaxUnavailable = ptr.To[int32](2), ptr.To(intstr.FromInt32(0))
			},
			func(s *v1beta1.CloneSet) {
				s.Spec.Replicas, s.Spec.ScaleStrategy.MaxUnavailable = ptr.To[int32](1), nil
			}, "ScaleUpLimited",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var shown *unstructured.Unstructured // by the cache, in the place of the set as it is
			m := newModelWith(t, cloneset.Options{}, func(c client.WithWatch) client.WithWatch {
				return interceptor.NewClient(c, interceptor.Funcs{Get: func(
					ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
				) error {
					if set, is := o.(*unstructured.Unstructured); is && shown != nil {
						shown.DeepCopyInto(set)
						return nil
					}
					return c.Get(ctx, key, o, opts...)
				}})
			})
			set := m.create("web", 1, c.set)
			m.eventually(set, settled)
			for times := 1; times <= 2; times++ {
				m.change(set, c.cause)
				before := &unstructured.Unstructured{}
				before.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("CloneSet"))
				before.SetNamespace(set.Namespace)
				before.SetName(set.Name)
				m.look(before)
				shown = before
				for range 3 {
					m.Reconcile()
				}
				shown = nil
				m.stays(set, m.emitted(c.event, times))
				m.change(set, c.remove)
				m.eventually(set, settled)
			}
			if t.Failed() {
				t.Log(c.why)
			}
		})
	}
}
