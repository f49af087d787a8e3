package objects

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// FrozenPods returns a client that lists the pods as they are now, by their owner, until catchUp is called: a cache
// that lags. Lists by other fields, as those of orphans, show what is stored.
func (m *Model) FrozenPods() (lagging client.Client, catchUp func()) {
	m.t.Helper()
	var pods corev1.PodList
	if err := m.Server.List(m.t.Context(), &pods); err != nil {
		m.t.Fatal(err)
	}
	frozen := true
	return interceptor.NewClient(m.Server, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
			if list, isPods := into.(*corev1.PodList); isPods && frozen && !hasOtherField(opts) {
				pods.DeepCopyInto(list)
				return nil
			}
			return c.List(ctx, into, opts...)
		},
	}), func() { frozen = false }
}

// hasOtherField reports whether a list is by a field that is not the owner.
func hasOtherField(opts []client.ListOption) bool {
	var o client.ListOptions
	o.ApplyOptions(opts)
	return o.FieldSelector != nil && !o.FieldSelector.Empty() &&
		o.FieldSelector.Requirements()[0].Field != "kruisekit.dev/owner-uid"
}
