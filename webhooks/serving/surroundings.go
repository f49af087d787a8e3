package serving

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// page is how many objects one request lists, which bounds the memory, and sample is how many pods show their
	// families.
	page, sample = 250, 20
	// remembered is how long nodes and families are used for an address that is not that of a node, and nodesRemembered
	// for one that is: an API server is checked once a minute and stays where it is, and in a large cluster the nodes are
	// many. The pods come first in a check.
	remembered, nodesRemembered = time.Minute, time.Hour
	// reading is how long it may take to read them.
	reading = 20 * time.Second
)

// surroundings are what is known of addresses that are those of no pod. They are read for all clients together, because
// clients with unknown addresses cost nothing to make.
type surroundings struct {
	reader  client.Reader
	spared  []string
	flights singleflight.Group

	mu   sync.Mutex
	last *facts
	at   time.Time
	// tried is when a reading was started for which no request waits.
	tried time.Time
}

// facts are the result of one reading.
type facts struct {
	// nodes are the addresses of API servers, of nodes and of their tunnels and bridges, which packets of API servers
	// have as their source.
	nodes map[netip.Addr]bool
	// v4 and v6 report that pods have first addresses of the family.
	v4, v6 bool
}

// verdict returns what is known of an address at which no pod is found. While nodes cannot be read, nothing is.
func (s *surroundings) verdict(ctx context.Context, address netip.Addr) Verdict {
	f, err := s.facts(ctx, address)
	switch {
	case err != nil:
		log.FromContext(ctx).V(1).Info("Checked a client without the nodes",
			"client", address.String(), "reason", err.Error())
	case f.nodes[address]:
		return Verdict{}
	case f.v4 != f.v6 && f.v4 != address.Is4():
		return Verdict{Why: isUnseen}
	}
	return Verdict{Unknown: true}
}

// facts reads at most once a minute, and once an hour where the address is known. A reading that takes long goes on for
// the next clients.
func (s *surroundings) facts(ctx context.Context, address netip.Addr) (*facts, error) {
	s.mu.Lock()
	last, at := s.last, s.at
	s.mu.Unlock()
	now := time.Now() //nolint:forbidigo // of connections, which no test has at another time
	if age := now.Sub(at); last != nil && (age < remembered || age < nodesRemembered && last.nodes[address]) {
		return last, nil
	}
	result := s.flights.DoChan("", func() (any, error) { return s.renew(ctx, now) })
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("read nodes: %w", ctx.Err())
	case r := <-result:
		f, _ := r.Val.(*facts)
		return f, r.Err
	}
}

// renew reads, and remembers what it has read.
func (s *surroundings) renew(ctx context.Context, now time.Time) (*facts, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reading)
	defer cancel()
	f, err := s.read(ctx)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last, s.at = f, now
	}
	return f, err
}

// has reports whether an address was known at the last reading, which it renews once in an hour and does not wait for.
func (s *surroundings) has(ctx context.Context, address netip.Addr) bool {
	now := time.Now() //nolint:forbidigo // as above
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.last == nil || now.Sub(s.at) >= nodesRemembered) && now.Sub(s.tried) >= retry {
		s.tried = now
		go func() {
			if _, err, _ := s.flights.Do("", func() (any, error) { return s.renew(ctx, now) }); err != nil {
				log.FromContext(ctx).V(1).Info("Read no addresses of nodes", "reason", err.Error())
			}
		}()
	}
	return s.last != nil && s.last.nodes[address]
}

func (s *surroundings) read(ctx context.Context) (*facts, error) {
	f := &facts{nodes: map[netip.Addr]bool{}}
	all, err := servers(ctx, s.reader)
	if err != nil {
		return nil, err
	}
	for _, address := range all {
		f.one(address)
	}
	for _, namespace := range s.spared {
		var pods corev1.PodList
		if err := s.reader.List(ctx, &pods, client.InNamespace(namespace), client.Limit(sample)); err != nil {
			return nil, fmt.Errorf("list pods of %s: %w", namespace, err)
		}
		for i := range pods.Items {
			if first, err := netip.ParseAddr(pods.Items[i].Status.PodIP); err == nil {
				f.v4, f.v6 = f.v4 || first.Is4(), f.v6 || first.Is6()
			}
		}
	}
	for next := ""; ; {
		var nodes corev1.NodeList
		err := s.reader.List(ctx, &nodes, client.Limit(page), client.Continue(next))
		if apierrors.IsForbidden(err) {
			return f, nil // without the right, the API servers there wait
		}
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		for i := range nodes.Items {
			f.add(&nodes.Items[i])
		}
		if next = nodes.Continue; next == "" {
			return f, nil
		}
	}
}

// add adds the addresses of a node: those of its status, those that a network plugin notes in annotations, and the
// first two of its ranges of pods, which tunnels and bridges have.
func (f *facts) add(node *corev1.Node) {
	for _, a := range node.Status.Addresses {
		f.one(a.Address)
	}
	for _, value := range node.Annotations {
		f.one(value)
	}
	for _, text := range append([]string{node.Spec.PodCIDR}, node.Spec.PodCIDRs...) {
		if pods, err := netip.ParsePrefix(text); err == nil && !pods.IsSingleIP() {
			first := pods.Masked().Addr()
			f.nodes[first], f.nodes[first.Next()] = true, true
		}
	}
}

// one adds an address, with the length of a prefix or without.
func (f *facts) one(text string) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		prefix, wrong := netip.ParsePrefix(text)
		if wrong != nil {
			return
		}
		address = prefix.Addr()
	}
	f.nodes[address.Unmap().WithZone("")] = true
}
