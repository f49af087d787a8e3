package sidecarset_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/pub"
)

// TestUnderBudget: a set that may update all pods at once updates one to an image that cannot be pulled, where the
// webhook of disruptions keeps a budget of one. The others follow once the image is repaired.
func TestUnderBudget(t *testing.T) {
	const pods, unavailable = 5, 1
	var mu sync.Mutex // the budget admits one pod after the other
	refused := 0
	var m *model
	m = newModel(t, sidecarset.Options{}, func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Patch: func(
				ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption,
			) error {
				before := &corev1.Pod{}
				if _, is := o.(*corev1.Pod); !is || c.Get(ctx, client.ObjectKeyFromObject(o), before) != nil {
					return c.Patch(ctx, o, p, options...)
				}
				mu.Lock()
				defer mu.Unlock()
				room := available(m.pods()) > pods-unavailable
				if err := c.Patch(ctx, o, p, options...); err != nil {
					return err
				}
				after := &corev1.Pod{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), after); err != nil {
					return err
				}
				if room || !pub.Available(before, pub.Policy{}) || pub.Effect(before, after, "", pub.Policy{}) == pub.Harmless {
					return nil
				}
				refused++
				if err := m.Server.Put(before); err != nil {
					return err
				}
				return apierrors.NewForbidden(schema.GroupResource{Resource: "podunavailablebudget"}, "web",
					errors.New("pub unavailable allowed is negative"))
			},
		})
	})
	m.Kubelet.Broken = func(image string) bool { return image == "mesh:broken" }
	set := m.create("mesh", func(s *v1beta1.SidecarSet) {
		s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromString("100%"))
	})
	m.fleet(pods, set)
	m.counted(set, pods, pods, pods, pods)
	least := pods
	m.change(set, image("mesh:broken"))
	m.until(func() error {
		least = min(least, available(m.pods()))
		m.get(set)
		if set.Status.UpdatedPods != 1 || refused < 2*(pods-1) {
			return fmt.Errorf("%d updates refused, status %+v", refused, set.Status)
		}
		return nil
	})
	if least != pods-unavailable {
		t.Errorf("%d of %d pods were available", least, pods)
	}
	m.change(set, image("mesh:2"))
	m.until(func() error {
		if least = min(least, available(m.pods())); least < pods-unavailable {
			t.Fatalf("%d of %d pods are available", least, pods)
		}
		m.get(set)
		if set.Status.UpdatedReadyPods != pods {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
}

func available(pods []corev1.Pod) int {
	n := 0
	for i := range pods {
		if pub.Available(&pods[i], pub.Policy{}) {
			n++
		}
	}
	return n
}
