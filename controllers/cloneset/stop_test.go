package cloneset_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

// The manager stops at any of its writes, and another one without a ledger continues, with a cache that is current or
// that shows the pods and claims from before. No pod or claim is created twice, and no pod restarts twice.
func TestStopAtEachWrite(t *testing.T) {
	for name, c := range map[string]struct {
		replicas          int32
		change            func(*v1beta1.CloneSet)
		created, restarts int
	}{"creating": {0, scaled(2), 2, 0}, "updating": {2, image("web:2"), 0, 1}} {
		for _, frozen := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stale cache %t", name, frozen), func(t *testing.T) {
				for at, written := 1, 1; written >= at; at++ {
					m := newModel(t, cloneset.Options{})
					cache := m.Server.Lagging()
					cache.Only = func(o runtime.Object) bool {
						_, pods := o.(*corev1.PodList)
						_, claims := o.(*corev1.PersistentVolumeClaimList)
						return pods || claims
					}
					earlier, stale := m.Server.Snapshot(), false
					process := &podbench.Process{Server: cache, Start: func(c client.WithWatch) reconcile.Reconciler {
						if stale {
							cache.View = earlier
						}
						return m.reconciler(cloneset.Options{}, c)
					}}
					m.Reconciler = process
					set := m.create("web", c.replicas, func(s *v1beta1.CloneSet) { inPlace(s); withClaims(s) })
					m.eventually(set, settled)
					earlier, stale = m.Server.Snapshot(), frozen
					m.Server.Requests()
					process.DieAt(at)
					m.change(set, c.change)
					m.Still()
					cache.Thaw()
					stale = false
					m.eventually(set, settled)
					written = process.Written()
					asked := m.Server.Requests()
					created, deleted := requests.About(asked, "POST pods/", " 201"), requests.About(asked, "DELETE pods/")
					if len(created) != c.created || len(deleted) > 0 || len(m.claims()) != 2 {
						t.Errorf("stop at write %d: %d pods were created and %d deleted, with %d claims; want %d, none and 2",
							at, len(created), len(deleted), len(m.claims()), c.created)
					}
					for _, pod := range m.pods(set) {
						if n := pod.Status.ContainerStatuses[0].RestartCount; int(n) != c.restarts {
							t.Errorf("stop at write %d: %s restarted %d times", at, pod.Name, n)
						}
					}
				}
			})
		}
	}
}
