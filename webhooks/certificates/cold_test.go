package certificates

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var errUnsynced = errors.New("caches are not synced")

// replica is a Keeper whose caches are not synced, beside endpoints of its Service.
type replica struct {
	*Keeper

	clock *clocktesting.FakeClock
	found []discoveryv1.EndpointSlice
	looks int
	fault error
}

func newReplica() *replica {
	r := &replica{clock: clocktesting.NewFakeClock(epoch())}
	r.Keeper = &Keeper{
		options: Options{Clock: r.clock, Port: port}.withDefaults(types.NamespacedName{Namespace: "shop", Name: "webhooks"}),
	}
	r.cold.endpoints = func(context.Context) ([]discoveryv1.EndpointSlice, error) {
		r.looks++
		return r.found, r.fault
	}
	r.cold.addresses = func() ([]net.Addr, error) {
		return []net.Addr{
			&net.IPNet{IP: net.IPv4(127, 0, 0, 1)}, &net.IPNet{IP: net.ParseIP(own)}, &net.IPNet{IP: net.ParseIP(ownV6)},
		}, nil
	}
	r.settled.Store(true)
	r.stores("v1alpha1", "v1beta1")
	return r
}

// stores observes a CRD whose storage version is v1beta1.
func (r *replica) stores(versions ...string) {
	d := &definition{ObjectMeta: metav1.ObjectMeta{Name: "carts.example.com"}}
	d.Spec.Versions = []version{{Name: "v1alpha1"}, {Name: "v1beta1", Storage: true}}
	d.Status.StoredVersions = versions
	r.conversions.observe(d, true)
}

// The replica has two addresses and a port.
const (
	own, ownV6 = "192.0.2.7", "2001:db8::7"
	port       = 9876
)

// endpoint adds an endpoint of another replica to the Service.
func (r *replica) endpoint(ready *bool) { r.endpointAt("192.0.2.1", port, ready) }

func (r *replica) endpointAt(address string, port int32, ready *bool) {
	r.found = append(r.found, discoveryv1.EndpointSlice{
		Ports: []discoveryv1.EndpointPort{{Port: &port}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready}},
		},
	})
}

// isReady asks the check of caches that are not synced.
func (r *replica) isReady(t *testing.T) bool {
	t.Helper()
	check := r.ColdStart(func(*http.Request) error { return errUnsynced })
	err := check(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
	if err != nil && !errors.Is(err, errUnsynced) {
		t.Errorf("the check failed with %v", err)
	}
	return err == nil
}

func TestColdStart(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(r *replica)
		want    bool
	}{
		"no replica is ready, and etcd holds an older version": {
			prepare: func(*replica) {},
			want:    true,
		},
		"replicas start beside each other": {
			prepare: func(r *replica) { r.endpoint(ptr.To(false)) },
			want:    true,
		},
		"another replica is ready": {
			prepare: func(r *replica) { r.endpoint(ptr.To(true)) },
		},
		"another replica is ready, by the default of the API": {
			prepare: func(r *replica) { r.endpoint(nil) },
		},
		"the container has restarted, and its own endpoint is still ready": {
			prepare: func(r *replica) { r.endpointAt(own, port, ptr.To(true)) },
			want:    true,
		},
		"the Service has the other family of addresses": {
			prepare: func(r *replica) { r.endpointAt(ownV6, port, ptr.To(true)) },
			want:    true,
		},
		"another replica is ready beside the own endpoint": {
			prepare: func(r *replica) {
				r.endpointAt(own, port, ptr.To(true))
				r.endpoint(ptr.To(true))
			},
		},
		"another replica of the same address is ready": {
			prepare: func(r *replica) { r.endpointAt(own, port+1, ptr.To(true)) },
		},
		"etcd holds the storage version alone": {
			prepare: func(r *replica) { r.stores("v1beta1") },
		},
		"the CRD is not converted by the Service": {
			prepare: func(r *replica) {
				r.conversions.observe(&definition{ObjectMeta: metav1.ObjectMeta{Name: "carts.example.com"}}, false)
			},
		},
		"the CA is not in all targets": {
			prepare: func(r *replica) { r.settled.Store(false) },
		},
		"endpoints cannot be listed": {
			prepare: func(r *replica) { r.fault = errors.New("forbidden") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplica()
			row.prepare(r)
			if got := r.isReady(t); got != row.want {
				t.Errorf("ready: %v, want %v", got, row.want)
			}
		})
	}
}

// A replica that stays without caches gives way to another one that is ready.
func TestColdStartEnds(t *testing.T) {
	r := newReplica()
	if !r.isReady(t) {
		t.Fatal("the first replica is not ready")
	}
	r.endpoint(ptr.To(true))
	r.clock.Step(coldTerm - time.Second)
	if !r.isReady(t) {
		t.Error("the replica is not ready during its term")
	}
	r.clock.Step(time.Second)
	if r.isReady(t) {
		t.Error("the replica is ready without caches beside another one")
	}
}

// The own endpoint, which is ready since this replica is, ends no cold start: without it no replica would convert.
func TestColdStartContinues(t *testing.T) {
	r := newReplica()
	if !r.isReady(t) {
		t.Fatal("the first replica is not ready")
	}
	r.endpointAt(own, port, ptr.To(true))
	for range 3 {
		r.clock.Step(coldTerm)
		if !r.isReady(t) {
			t.Fatal("the only replica gives way to itself")
		}
	}
}

// Requests for /readyz cost no more than a list every two seconds.
func TestColdStartLooks(t *testing.T) {
	r := newReplica()
	r.endpoint(ptr.To(true))
	for range 100 {
		r.isReady(t)
	}
	if r.looks != 1 {
		t.Errorf("listed endpoints %d times at once", r.looks)
	}
	r.clock.Step(coldLook)
	r.isReady(t)
	if r.looks != 2 {
		t.Errorf("listed endpoints %d times after %s", r.looks, coldLook)
	}
	synced := r.ColdStart(func(*http.Request) error { return nil })
	r.clock.Step(coldLook)
	if err := synced(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)); err != nil ||
		r.looks != 2 {
		t.Errorf("a replica with caches listed endpoints: %d, %v", r.looks, err)
	}
}
