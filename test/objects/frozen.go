package objects

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/test/rig/apiserver"
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

// Behind returns a client that shows the objects of List as they were at an earlier time, and all others as they are:
// the cache of a new leader whose first list of its objects came from a watch cache that lags. Thaw has it catch up.
func (m *Model) Behind(earlier *apiserver.Server) *apiserver.Lagging {
	m.t.Helper()
	kind := func(o runtime.Object) string {
		gvk, err := apiutil.GVKForObject(o, m.Server.Scheme())
		if err != nil {
			m.t.Fatal(err)
		}
		return strings.TrimSuffix(gvk.String(), "List")
	}
	reconciled := kind(m.List)
	l := m.Server.Lagging()
	l.View, l.Only = earlier, func(o runtime.Object) bool { return kind(o) == reconciled }
	return l
}
