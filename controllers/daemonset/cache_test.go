package daemonset_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// A pod that the reconciler has deleted, and that the cache shows as before, is no failure.
func TestDeletedBehindCache(t *testing.T) {
	m := newModel(t, 1, daemonset.Options{})
	set := m.create()
	m.eventually(set, settled(1))
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
	m.change(set, image("agent:2"))
	for range 3 {
		m.Reconcile()
	}
	if m.look(set); len(m.Server.Events(set, "FailedCreate")) > 0 || len(set.Status.Conditions) > 0 || m.picture() != "n1:1*" {
		t.Errorf("events %v, conditions %v, pods %s", m.Server.Events(set, "FailedCreate"), set.Status.Conditions, m.picture())
	}
	frozen = false
	m.becomes(set, "n1:2")
	if m.look(set); len(m.Server.Events(set, "FailedCreate")) > 0 {
		t.Errorf("events %v", m.Server.Events(set, "FailedCreate"))
	}
}

func isOrphans(opts []client.ListOption) bool {
	var o client.ListOptions
	o.ApplyOptions(opts)
	return o.FieldSelector != nil && !o.FieldSelector.Empty() && o.FieldSelector.Requirements()[0].Field != "kruisekit.dev/owner-uid"
}
