package containerrestart

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// leastGrace is what every container gets to stop, in seconds.
	leastGrace = 2
	// usualGrace is the grace period, in seconds, of a request that sets none.
	usualGrace = 30
	// mostGrace is the longest grace period, in seconds, that fits a time.Duration.
	mostGrace = math.MaxInt64 / int64(time.Second)
)

// Kill is a container to be stopped, so that the kubelet starts another.
//
// The daemon first emits an event with Text. Then it runs the Hook, if there is one, for Grace at most. A hook that
// fails is reported in an event, and the kill continues. Then the runtime stops the container within the time of
// StopWithin.
type Kill struct {
	// Container is its name.
	Container string
	// ContainerID is runtime://id.
	ContainerID string
	// Grace is the time for the hook and for stopping.
	Grace time.Duration
	// Hook to run before; nil for none.
	Hook *Hook
	// Text is the message of the event Killing.
	Text string
}

// StopWithin is the time that the container gets to stop after its hook took some.
func (k Kill) StopWithin(spent time.Duration) time.Duration {
	return max(k.Grace-spent.Truncate(time.Second), leastGrace*time.Second)
}

// Hook is what runs before a container is stopped. One member is set, or Err.
type Hook struct {
	// Exec is a command to run in the container.
	Exec []string
	// HTTP is a request to send.
	HTTP *HTTPGet
	// Sleep is a time to wait; nil for another hook.
	Sleep *time.Duration
	// Err says why the hook cannot run. That counts as a hook that failed.
	Err error
}

// HTTPGet is a request to the container.
type HTTPGet struct {
	// URL with the host and port to connect to. A server that answers an https request in plain http is asked again so.
	URL string
	// Headers of the request, that of the host among them.
	Headers []corev1.HTTPHeader
}

// secondsOf is a time of whole seconds, never negative.
func secondsOf(n int64) time.Duration {
	return time.Duration(min(max(n, 0), mostGrace)) * time.Second
}

// hookOf resolves a hook. Ports are those of its container, and ip is what it connects to where it names no host.
func hookOf(h *corev1.LifecycleHandler, ports []corev1.ContainerPort, ip string) *Hook {
	switch {
	case h == nil:
		return nil
	case h.Exec != nil:
		return &Hook{Exec: h.Exec.Command}
	case h.HTTPGet != nil:
		get, err := httpGetOf(h.HTTPGet, ports, ip)
		return &Hook{HTTP: get, Err: err}
	case h.Sleep != nil:
		d := secondsOf(h.Sleep.Seconds)
		return &Hook{Sleep: &d}
	default:
		return &Hook{Err: errors.New("the hook has no handler that can run")}
	}
}

func httpGetOf(get *corev1.HTTPGetAction, ports []corev1.ContainerPort, ip string) (*HTTPGet, error) {
	host := get.Host
	if host == "" {
		host = ip
	}
	if host == "" {
		return nil, errors.New("the pod has no IP, and the hook names no host")
	}
	port, err := portOf(get.Port, ports)
	if err != nil {
		return nil, err
	}
	// What looks like a URL of its own gives path and query alone, as in kubelets.
	u, err := url.Parse(get.Path)
	if err != nil {
		u = &url.URL{Path: get.Path}
	}
	target := url.URL{
		Scheme: strings.ToLower(string(get.Scheme)), Host: net.JoinHostPort(host, strconv.Itoa(port)),
		Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery,
	}
	if target.Scheme == "" {
		target.Scheme = "http"
	}
	return &HTTPGet{URL: target.String(), Headers: get.HTTPHeaders}, nil
}

// portOf finds the number of a port.
func portOf(port intstr.IntOrString, ports []corev1.ContainerPort) (int, error) {
	n := port.IntValue()
	if port.Type == intstr.String {
		for _, p := range ports {
			if p.Name == port.StrVal && p.Name != "" {
				n = int(p.ContainerPort)
			}
		}
	}
	if n < 1 || n > math.MaxUint16 {
		return 0, fmt.Errorf("the container has no port %q", port.String())
	}
	return n, nil
}
