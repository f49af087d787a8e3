package serving

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
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

// verdicts remember which clients are refused.
type verdicts struct {
	refuse  func(ctx context.Context, address netip.Addr) (why string, err error)
	unknown *rate.Limiter

	mu    sync.Mutex
	known map[netip.Addr]verdict
}

type verdict struct {
	why   string
	until time.Time
}

func newVerdicts(refuse func(context.Context, netip.Addr) (string, error)) *verdicts {
	return &verdicts{refuse: refuse, unknown: rate.NewLimiter(checks, burst), known: map[netip.Addr]verdict{}}
}

// of returns why a client is refused, or an error where that is not known.
func (v *verdicts) of(ctx context.Context, address netip.Addr) (string, error) {
	if v.refuse == nil || !address.IsValid() {
		return "", nil
	}
	now := time.Now() //nolint:forbidigo // of connections, which no test has at another time
	v.mu.Lock()
	last, found := v.known[address]
	v.mu.Unlock()
	if found && now.Before(last.until) {
		return last.why, nil
	}
	// A client that was answered is checked without delay, however many others there are.
	if answered := found && last.why == ""; !answered && !v.unknown.AllowN(now, 1) {
		return "too many clients to check: try again", nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	why, err := v.refuse(ctx, address)
	if err != nil {
		return "", err
	}
	v.keep(address, verdict{why, now.Add(fresh)})
	return why, nil
}

// keep remembers a verdict. Where there are too many, refused clients are forgotten first: they are checked again.
func (v *verdicts) keep(address netip.Addr, now verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= mostVerdicts {
		for other, old := range v.known {
			if old.why != "" {
				delete(v.known, other)
			}
		}
	}
	if len(v.known) >= mostVerdicts {
		clear(v.known)
	}
	v.known[address] = now
}

// refused reports whether a client was refused within the last minute.
func (v *verdicts) refused(address netip.Addr) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, found := v.known[address]
	return found && last.why != "" && time.Now().Before(last.until) //nolint:forbidigo // as above
}

// Pods returns a check for Clients.Refuse: it refuses an address that is that of a pod, unless the pod is in one of the spared
// namespaces, in which API servers or their tunnels may run. Pods in the network of their node have its address, and are not refused.
//
// The reader must read live: a pod may send as soon as it has its address.
func Pods(reader client.Reader, spared ...string) func(ctx context.Context, address netip.Addr) (why string, err error) {
	return func(ctx context.Context, address netip.Addr) (string, error) {
		var pods corev1.PodList
		at := fields.AndSelectors(fields.OneTermEqualSelector("spec.hostNetwork", "false"), fields.OneTermEqualSelector("status.podIP", address.String()))
		if err := reader.List(ctx, &pods, client.MatchingFieldsSelector{Selector: at}); err != nil {
			return "", fmt.Errorf("list pods at %s: %w", address, err)
		}
		for i := range pods.Items {
			if foreign(&pods.Items[i], spared) {
				return "the client is a pod: only API servers are answered", nil
			}
		}
		return "", nil
	}
}

// foreign reports whether a pod is no API server. A pod that has ended may still have the address that another one has now.
func foreign(pod *corev1.Pod, spared []string) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.Spec.HostNetwork {
		return false
	}
	return !slices.Contains(spared, pod.Namespace)
}
