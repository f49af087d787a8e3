package statefulset_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
)

// A pod that the reconciler has deleted, and that the cache shows as before, is no failure.
func TestDeletedBehindCache(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 1)
	ready := func() error {
		if m.look(set); set.Status.UpdatedReadyReplicas != 1 || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	}
	m.Eventually(ready)
	var pods corev1.PodList
	if err := m.Server.List(m.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	frozen := true
	m.restart(interceptor.NewClient(m.Server, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
			if list, isPods := into.(*corev1.PodList); isPods && frozen && !isOrphans(opts) {
				pods.DeepCopyInto(list)
				return nil
			}
			return c.List(ctx, into, opts...)
		},
	}))
	m.change(set, func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "web:2" })
	for range 3 {
		m.Reconcile()
	}
	if m.look(set); len(m.Server.Events(set, "FailedCreate")) > 0 || len(set.Status.Conditions) > 0 || m.pod(set, 0).DeletionTimestamp == nil {
		t.Errorf("events %v, conditions %v", m.Server.Events(set, "FailedCreate"), set.Status.Conditions)
	}
	frozen = false
	m.Eventually(ready)
	if events := m.Server.Events(set, "FailedCreate"); len(events) > 0 {
		t.Errorf("events %v", events)
	}
}

func isOrphans(opts []client.ListOption) bool {
	var o client.ListOptions
	o.ApplyOptions(opts)
	return o.FieldSelector != nil && !o.FieldSelector.Empty() && o.FieldSelector.Requirements()[0].Field != "kruisekit.dev/owner-uid"
}
