package serving_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/webhooks/serving"
)

func TestCertificates(t *testing.T) {
	ca, shown := authority(t, "kube-apiserver", "somebody")
	_, foreign := authority(t, "kube-apiserver")
	clients := serving.Clients{CA: ca, Names: []string{"kube-apiserver"}, Public: []string{"/healthz"}, Bare: []string{"/convert"}}
	g := start(t, serving.Options{Clients: clients}, "/healthz", "/convert")
	cases := map[string]struct {
		why   string
		shown []tls.Certificate
		path  string
		code  int
	}{
		"none":                     {"a review without a certificate is refused", nil, path, http.StatusUnauthorized},
		"that of an API server":    {"the CA has signed its name", []tls.Certificate{shown["kube-apiserver"]}, path, http.StatusOK},
		"another name":             {"the CA may sign for others too", []tls.Certificate{shown["somebody"]}, path, http.StatusUnauthorized},
		"another CA":               {"anybody can use the name", []tls.Certificate{foreign["kube-apiserver"]}, path, 0},
		"none, for a health check": {"it has nothing to disclose", nil, "/healthz", http.StatusOK},
		"none, for a conversion":   {"API servers show none there, and a conversion reads nothing", nil, "/convert", http.StatusOK},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := g.calls.Load()
			code, text := g.post(t, newClient(t, "127.0.0.1", c.shown...), c.path, strings.NewReader("{}"))
			if code != c.code {
				t.Errorf("%s: %d %s, want %d", c.why, code, text, c.code)
			}
			if ran := g.calls.Load() > before; ran != (c.code == http.StatusOK) {
				t.Errorf("%s: the handler ran: %t", c.why, ran)
			}
		})
	}
}

// made is a check of clients by their address, which counts itself.
type made struct {
	checks atomic.Int64
	why    map[string]string
	// late is known from the second check on.
	late map[string]string
	err  error
}

func (m *made) check(_ context.Context, address netip.Addr) (serving.Verdict, error) {
	n := m.checks.Add(1)
	if why, found := m.late[address.String()]; found {
		return serving.Verdict{Why: map[bool]string{true: why}[n > 1], Unknown: n == 1 || why == ""}, m.err
	}
	return serving.Verdict{Why: m.why[address.String()]}, m.err
}

// A review that a pod made up reaches no handler. Its address is looked up once, and afterwards it cannot connect.
func TestForgedReview(t *testing.T) {
	pods := &made{why: map[string]string{"127.0.0.3": "the client is a pod"}}
	g := start(t, serving.Options{Clients: serving.Clients{Check: pods.check, Public: []string{"/healthz"}}}, "/healthz")
	forger := newClient(t, "127.0.0.3")
	if code, text := g.post(t, forger, path, strings.NewReader("{}")); code != http.StatusForbidden || text != "the client is a pod" {
		t.Errorf("the pod is answered %d %s", code, text)
	}
	for range 3 {
		if code, text := g.post(t, forger, path, strings.NewReader("{}")); code != 0 && code != http.StatusForbidden {
			t.Errorf("the pod is answered %d %s", code, text)
		}
	}
	if g.calls.Load() != 0 || g.refused(t, "client") == 0 || g.refused(t, "connections") == 0 {
		t.Errorf("%d calls of the handler, %d requests and %d connections refused", g.calls.Load(), g.refused(t, "client"), g.refused(t, "connections"))
	}
	for range 3 {
		if code, text := g.post(t, newClient(t, "127.0.0.2"), path, strings.NewReader("{}")); code != http.StatusOK {
			t.Errorf("an API server is answered %d %s", code, text)
		}
	}
	if n := pods.checks.Load(); n != 2 {
		t.Errorf("%d lookups of 2 clients", n)
	}
}

// Many clients that nobody knows wait for each other, and not an API server that is known.
func TestManyForgers(t *testing.T) {
	pods := &made{why: map[string]string{}}
	for i := range 60 {
		pods.why[fmt.Sprintf("127.0.1.%d", i)] = "the client is a pod"
	}
	g := start(t, serving.Options{Clients: serving.Clients{Check: pods.check}})
	known := newClient(t, "127.0.0.2")
	for i := range 60 {
		if code, text := g.post(t, known, path, strings.NewReader("{}")); code != http.StatusOK {
			t.Fatalf("an API server is answered %d %s", code, text)
		}
		if code, _ := g.post(t, newClient(t, fmt.Sprintf("127.0.1.%d", i)), path, strings.NewReader("{}")); code != http.StatusForbidden {
			t.Fatalf("pod %d is answered %d", i, code)
		}
	}
	if n := pods.checks.Load(); n > 40 {
		t.Errorf("%d lookups for 61 clients at once", n)
	}
}

// The address of a pod becomes known after the pod has started. All requests of its first moments wait, and none is answered.
func TestForgedReviewOfNewPod(t *testing.T) {
	cases := map[string]struct {
		why, late string
		code      int
	}{
		"a pod":                {"its kubelet reports the address a moment late", "the client is a pod", http.StatusForbidden},
		"a distant API server": {"no object has its address", "", http.StatusOK},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pods := &made{late: map[string]string{"127.0.0.3": c.late}}
			g := start(t, serving.Options{Clients: serving.Clients{Check: pods.check, Settle: 50 * time.Millisecond}})
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					if code, text := g.post(t, newClient(t, "127.0.0.3"), path, strings.NewReader("{}")); code != c.code {
						t.Errorf("%s: answered %d %s, want %d", c.why, code, text, c.code)
					}
				})
			}
			all.Wait()
			if n := pods.checks.Load(); n != 2 {
				t.Errorf("%d checks, want 2", n)
			}
		})
	}
}

// While pods cannot be read, reviews are answered: else an outage of the API server's list would stop all creations.
func TestUncheckedClient(t *testing.T) {
	pods := &made{err: errors.New("down")}
	g := start(t, serving.Options{Clients: serving.Clients{Check: pods.check}})
	if code, text := g.post(t, newClient(t, "127.0.0.2"), path, strings.NewReader("{}")); code != http.StatusOK {
		t.Errorf("answered %d %s", code, text)
	}
}

func TestPods(t *testing.T) {
	pod := func(namespace string, change func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		if change != nil {
			change(&p)
		}
		return p
	}
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	answered, unknown := serving.Verdict{}, serving.Verdict{Unknown: true}
	refused := serving.Verdict{Why: "the client is a pod: only API servers are answered"}
	const address, other = "10.1.2.3", "10.9.9.9"
	cases := map[string]struct {
		why    string
		pods   []corev1.Pod
		server string
		want   serving.Verdict
	}{
		"nothing":                  {"it may be outside of the cluster, or a pod that has just started", nil, other, unknown},
		"an API server":            {"it is an endpoint of the Service kubernetes", nil, address, answered},
		"a pod":                    {"no API server has its address", []corev1.Pod{pod("shop", nil)}, other, refused},
		"a pod that waits":         {"its network may be ready before its phase", []corev1.Pod{pod("shop", phase(corev1.PodPending))}, other, refused},
		"a pod that has succeeded": {"its address may be that of another", []corev1.Pod{pod("shop", phase(corev1.PodSucceeded))}, other, unknown},
		"a pod that has failed":    {"its address may be that of another", []corev1.Pod{pod("shop", phase(corev1.PodFailed))}, address, answered},
		"a node":                   {"an API server may run there, in the network of the node", []corev1.Pod{pod("shop", func(p *corev1.Pod) { p.Spec.HostNetwork = true })}, other, answered},
		"a tunnel":                 {"API servers may come through pods of the system", []corev1.Pod{pod("kube-system", nil)}, other, answered},
		"ended and running":        {"one that runs is enough", []corev1.Pod{pod("shop", phase(corev1.PodFailed)), pod("shop", nil)}, other, refused},
	}
	for name, c := range cases {
		for _, err := range []error{nil, errors.New("down")} {
			t.Run(fmt.Sprintf("%s/%v", name, err), func(t *testing.T) {
				reader := interceptor.NewClient(nil, interceptor.Funcs{
					List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
						all := (&client.ListOptions{}).ApplyOptions(o)
						switch into := into.(type) {
						case *corev1.PodList:
							into.Items = c.pods
							if asked := all.FieldSelector.String(); asked != "status.podIP="+address {
								t.Errorf("asked for pods with %q", asked)
							}
						case *discoveryv1.EndpointSliceList:
							into.Items = []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{c.server}}}}}
							if asked := all.Namespace + " " + all.LabelSelector.String(); asked != "default kubernetes.io/service-name=kubernetes" {
								t.Errorf("asked for endpoints of %q", asked)
							}
						}
						return err
					},
				})
				got, failed := serving.Pods(reader, "kube-system")(t.Context(), netip.MustParseAddr(address))
				want := c.want
				if err != nil {
					want = serving.Verdict{}
				}
				if got != want || !errors.Is(failed, err) {
					t.Errorf("%s: %+v, %v, want %+v", c.why, got, failed, want)
				}
			})
		}
	}
}
