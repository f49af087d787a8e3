package objects

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// FrozenPods returns a client that lists the pods as they are now until catchUp is called: a cache that lags.
func (m *Model) FrozenPods() (lagging client.Client, catchUp func()) {
	l := m.Server.Lagging()
	l.Only = func(o runtime.Object) bool {
		_, isPods := o.(*corev1.PodList)
		return isPods
	}
	l.Freeze()
	return l, l.Thaw
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
