package serving

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Nodes are read in pages, and once for all clients. A client at an unknown address causes no other read of them.
func TestSurroundings(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
	cases := map[string]struct {
		why     string
		err     error
		reads   int
		unknown bool
	}{
		"two pages":   {"the address is that of a node on the second page", nil, 2, false},
		"no right":    {"the client waits, and the check works without nodes", forbidden, 1, true},
		"unavailable": {"the client waits, and the next one asks again", errors.New("down"), 3, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reads := 0
			s := &surroundings{reader: interceptor.NewClient(nil, interceptor.Funcs{
				List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
					nodes, is := into.(*corev1.NodeList)
					if !is {
						return nil // endpoints
					}
					reads++
					all := (&client.ListOptions{}).ApplyOptions(o)
					if all.Limit != page {
						t.Errorf("a list of %d nodes", all.Limit)
					}
					nodes.Continue = "more"
					if all.Continue != "" {
						nodes.Continue = ""
						nodes.Items = []corev1.Node{{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "10.0.0.1"}}}}}
					}
					return c.err
				},
			})}
			for range 3 {
				if got := s.verdict(t.Context(), netip.MustParseAddr("10.0.0.1")); got != (Verdict{Unknown: c.unknown}) {
					t.Errorf("%s: %+v", c.why, got)
				}
			}
			if reads != c.reads {
				t.Errorf("%s: %d reads of nodes, want %d", c.why, reads, c.reads)
			}
		})
	}
}

// The nodes are read again for an address that is not known, and not for that of a node, which is checked once a
// minute.
func TestNodesAreRemembered(t *testing.T) {
	reads := 0
	s := &surroundings{reader: interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
			nodes, is := into.(*corev1.NodeList)
			if !is {
				return nil // endpoints
			}
			reads++
			nodes.Items = []corev1.Node{{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "10.0.0.1"}}}}}
			return nil
		},
	})}
	known, unknown := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.9")
	for _, c := range []struct {
		why     string
		age     time.Duration
		address netip.Addr
		reads   int
	}{
		{"nothing is read yet", 0, known, 1},
		{"a node stays where it is", 30 * remembered, known, 1},
		{"the address may be that of a new node", 2 * remembered, unknown, 2},
		{"a node may be gone after an hour", 2 * nodesRemembered, known, 3},
	} {
		s.at = s.at.Add(-c.age)
		if got := s.verdict(t.Context(), c.address); got.Unknown != (c.address == unknown) || reads != c.reads {
			t.Errorf("%s: %+v after %d reads, want %d", c.why, got, reads, c.reads)
		}
	}
}

// Whether an address is known is asked at each connection: only the first call, and one in an hour, has the nodes read.
func TestKnownDoesNotWait(t *testing.T) {
	release, reads := make(chan struct{}), make(chan struct{}, 10)
	s := &surroundings{reader: interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
			switch into := into.(type) {
			case *corev1.NodeList:
				reads <- struct{}{}
				<-release
				into.Items = []corev1.Node{{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "10.0.0.1"}}}}}
			case *discoveryv1.EndpointSliceList:
				into.Items = []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.2"}}}}}
			}
			return nil
		},
	})}
	node, server := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for range 100 {
		if s.has(t.Context(), node) {
			t.Fatal("the node is known before it was read")
		}
	}
	close(release)
	<-reads
	for late := time.Now().Add(20 * time.Second); !s.has(t.Context(), node) ||
		!s.has(t.Context(), server); runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatal("a node and an API server that were read are not known")
		}
	}
	for i := range 1000 {
		if s.has(t.Context(), netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})) {
			t.Fatal("a stranger is known")
		}
	}
	if len(reads) != 0 {
		t.Errorf("%d more reads for strangers", len(reads))
	}
	s.mu.Lock()
	s.at, s.tried = s.at.Add(-2*nodesRemembered), time.Time{}
	s.mu.Unlock()
	if !s.has(t.Context(), node) {
		t.Error("the node is not known during the next reading")
	}
	<-reads
}
