package serving

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// fresh is how long the verdict about a client is used.
	fresh = time.Minute
	// mostVerdicts bounds the memory: a client has one address, an attacker with many pods has many.
	mostVerdicts = 4096
	// checks per second of clients that are not known, and how many at once. Each is a list of pods by their address.
	checks, burst = 5, 20
	// patience of one check.
	patience = 2 * time.Second
)

// Verdict is what is known of a client.
type Verdict struct {
	// Why the client is refused; empty for a client that is answered.
	Why string
	// Unknown is true when nothing is known of the address. The client waits for five seconds, in which the address of a pod that has just
	// started becomes known, and is checked again.
	Unknown bool
}

// verdicts remember which clients are refused.
type verdicts struct {
	check   func(ctx context.Context, address netip.Addr) (Verdict, error)
	settle  time.Duration
	unknown *rate.Limiter
	flights singleflight.Group

	mu    sync.Mutex
	known map[netip.Addr]verdict
}

type verdict struct {
	why   string
	until time.Time
}

func newVerdicts(c Clients) *verdicts {
	return &verdicts{check: c.Check, settle: c.Settle, unknown: rate.NewLimiter(checks, burst), known: map[netip.Addr]verdict{}}
}

// of returns why a client is refused, or an error where that is not known.
func (v *verdicts) of(ctx context.Context, address netip.Addr) (string, error) {
	if v.check == nil || !address.IsValid() {
		return "", nil
	}
	last, found := v.last(address)
	if found && time.Now().Before(last.until) { //nolint:forbidigo // of connections, which no test has at another time
		return last.why, nil
	}
	// All requests of a client wait for one check.
	result := v.flights.DoChan(address.String(), func() (any, error) {
		return v.decide(context.WithoutCancel(ctx), address, found && last.why == "")
	})
	select {
	case <-ctx.Done():
		return "", fmt.Errorf("check a client: %w", ctx.Err())
	case r := <-result:
		why, _ := r.Val.(string)
		return why, r.Err
	}
}

// decide checks a client. A client that was answered before is checked without delay, however many others there are.
func (v *verdicts) decide(ctx context.Context, address netip.Addr, answered bool) (string, error) {
	if !answered && !v.unknown.Allow() {
		return "too many clients to check: try again", nil
	}
	now, err := v.ask(ctx, address)
	if err == nil && now.Unknown && !answered {
		settled := time.NewTimer(v.settle)
		defer settled.Stop()
		<-settled.C // the client may go meanwhile; the verdict is of use for its next request
		now, err = v.ask(ctx, address)
	}
	if err != nil {
		return "", err
	}
	v.keep(address, verdict{now.Why, time.Now().Add(fresh)}) //nolint:forbidigo // as above
	return now.Why, nil
}

func (v *verdicts) ask(ctx context.Context, address netip.Addr) (Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return v.check(ctx, address)
}

func (v *verdicts) last(address netip.Addr) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, found := v.known[address]
	return last, found
}

// keep remembers a verdict. Where there are too many, refused clients are forgotten first: they are checked again.
func (v *verdicts) keep(address netip.Addr, now verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= mostVerdicts {
		maps.DeleteFunc(v.known, func(_ netip.Addr, old verdict) bool { return old.why != "" })
	}
	if len(v.known) >= mostVerdicts {
		clear(v.known)
	}
	v.known[address] = now
}

// refused reports whether a client was refused within the last minute.
func (v *verdicts) refused(address netip.Addr) bool {
	last, found := v.last(address)
	return found && last.why != "" && time.Now().Before(last.until) //nolint:forbidigo // as above
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=discovery.k8s.io,namespace=default,resources=endpointslices,verbs=list

// Pods returns a check for Clients.Check: it refuses an address that is that of a pod, unless the pod is in one of the spared
// namespaces, in which API servers or their tunnels may run. Known are also nodes, by the pods in their network, and the endpoints of
// the Service kubernetes.
//
// The reader must read live.
func Pods(reader client.Reader, spared ...string) func(ctx context.Context, address netip.Addr) (Verdict, error) {
	return func(ctx context.Context, address netip.Addr) (Verdict, error) {
		var pods corev1.PodList
		at := fields.OneTermEqualSelector("status.podIP", address.String())
		if err := reader.List(ctx, &pods, client.MatchingFieldsSelector{Selector: at}); err != nil {
			return Verdict{}, fmt.Errorf("list pods at %s: %w", address, err)
		}
		living := slices.DeleteFunc(pods.Items, ended)
		if slices.ContainsFunc(living, func(p corev1.Pod) bool { return !p.Spec.HostNetwork && !slices.Contains(spared, p.Namespace) }) {
			return Verdict{Why: "the client is a pod: only API servers are answered"}, nil
		}
		if len(living) > 0 {
			return Verdict{}, nil
		}
		var servers discoveryv1.EndpointSliceList
		of := client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}
		if err := reader.List(ctx, &servers, client.InNamespace(metav1.NamespaceDefault), of); err != nil {
			return Verdict{}, fmt.Errorf("list API servers: %w", err)
		}
		known := slices.ContainsFunc(servers.Items, func(s discoveryv1.EndpointSlice) bool {
			return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return slices.Contains(e.Addresses, address.String()) })
		})
		return Verdict{Unknown: !known}, nil
	}
}

// ended reports whether a pod may still have an address that another one has now.
func ended(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
