package certificates

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// coldTerm is how long a replica stays ready without its caches before it looks again for another one that is ready.
	coldTerm = 2 * time.Minute
	// coldLook is the pause between two looks.
	coldLook = 2 * time.Second
)

// coldStart is whether this replica is ready without its caches, as the first one of a cluster.
type coldStart struct {
	// endpoints lists those of the Service.
	endpoints func(ctx context.Context) ([]discoveryv1.EndpointSlice, error)
	// addresses are those of this process.
	addresses func() ([]net.Addr, error)

	mu     sync.Mutex
	until  time.Time // ready until then
	looked time.Time
}

// conversions are the CRDs that the service converts and of which etcd may hold objects in an older version.
type conversions struct {
	mu    sync.Mutex
	older map[string]bool
}

func (c *conversions) observe(d *definition, converted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.older == nil {
		c.older = map[string]bool{}
	}
	delete(c.older, d.Name)
	if converted && d.storesOlder() {
		c.older[d.Name] = true
	}
}

func (c *conversions) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.older) > 0
}

// ColdStart returns a readiness check for caches that also passes on a cold start. The caches of a replica sync only
// after the conversion webhook has answered where etcd holds objects in an older version. A Service sends the
// conversions to ready replicas alone, so that without this check no replica would ever become ready.
//
// On a cold start the Service has no ready endpoint of another replica, and a CRD of the targets has an older version
// in status.storedVersions. Reviews that arrive before the caches are synced wait for them, and fail by the failure
// policy of their webhook, as they do without a ready replica. While another replica is ready, the check passes with
// the given one alone.
//
// The check lists EndpointSlices of the Service, at most every two seconds, and not once the given check passes.
func (k *Keeper) ColdStart(check healthz.Checker) healthz.Checker {
	return func(r *http.Request) error {
		err := check(r)
		if err == nil || k.startsCold(r.Context()) {
			return nil
		}
		return err
	}
}

// startsCold reports whether this replica must be ready without its caches.
func (k *Keeper) startsCold(ctx context.Context) bool {
	if !k.settled.Load() || !k.conversions.any() {
		return false
	}
	k.cold.mu.Lock()
	defer k.cold.mu.Unlock()
	now := k.options.Clock.Now()
	if now.Before(k.cold.until) {
		return true
	}
	if now.Before(k.cold.looked.Add(coldLook)) {
		return false
	}
	k.cold.looked = now
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	other, err := k.otherReady(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to look for other replicas")
	}
	if err != nil || other {
		return false
	}
	k.cold.until = now.Add(coldTerm)
	log.FromContext(ctx).Info(
		"Became ready without caches, because stored objects need the conversion webhook and no replica serves it")
	return true
}

// endpoints lists those of the Service.
func (k *Keeper) endpoints(ctx context.Context) ([]discoveryv1.EndpointSlice, error) {
	var all discoveryv1.EndpointSliceList
	of := client.MatchingLabels{discoveryv1.LabelServiceName: k.service.Name}
	if err := k.client.List(ctx, &all, client.InNamespace(k.service.Namespace), of); err != nil {
		return nil, fmt.Errorf("list endpoints of %s: %w", k.service, err)
	}
	return all.Items, nil
}

// otherReady reports whether another replica takes requests. An endpoint of this process is no other replica, even if
// the endpoint is stale: after a restart of the container, and after an earlier pod of the same address.
func (k *Keeper) otherReady(ctx context.Context) (bool, error) {
	all, err := k.cold.endpoints(ctx)
	if err != nil {
		return false, err
	}
	addresses, err := k.cold.addresses()
	if err != nil {
		return false, fmt.Errorf("list own addresses: %w", err)
	}
	own := map[string]bool{}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			own[n.IP.String()] = true
		}
	}
	for i := range all {
		// Replicas of one address, as on the network of a host, have different ports.
		here := slices.ContainsFunc(all[i].Ports, func(p discoveryv1.EndpointPort) bool {
			return int(ptr.Deref(p.Port, 0)) == k.options.Port
		})
		for _, e := range all[i].Endpoints {
			isOwn := here && slices.ContainsFunc(e.Addresses, func(address string) bool { return own[address] })
			if !isOwn && ptr.Deref(e.Conditions.Ready, true) { // by the API an unknown state is ready
				return true, nil
			}
		}
	}
	return false, nil
}
