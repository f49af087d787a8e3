package serving_test

import (
	"cmp"
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
	clients := serving.Clients{
		CA: ca, Names: []string{"kube-apiserver"}, Public: []string{"/healthz"}, Bare: []string{"/convert"},
	}
	g := start(t, serving.Options{Clients: clients}, "/healthz", "/convert")
	cases := map[string]struct {
		why   string
		shown []tls.Certificate
		path  string
		code  int
	}{
		"none": {"a review without a certificate is refused", nil, path, http.StatusUnauthorized},
		"that of an API server": {
			why:   "the CA has signed its name",
			shown: []tls.Certificate{shown["kube-apiserver"]},
			path:  path,
			code:  http.StatusOK,
		},
		"another name": {
			why:   "the CA may sign for others too",
			shown: []tls.Certificate{shown["somebody"]},
			path:  path,
			code:  http.StatusUnauthorized,
		},
		"another CA":               {"anybody can use the name", []tls.Certificate{foreign["kube-apiserver"]}, path, 0},
		"none, for a health check": {"it has nothing to disclose", nil, "/healthz", http.StatusOK},
		"none, for a conversion": {
			why: "API servers show none there, and a conversion reads nothing", path: "/convert", code: http.StatusOK,
		},
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
	if code, text := g.post(t, forger, path, strings.NewReader("{}")); code != http.StatusForbidden ||
		text != "the client is a pod" {
		t.Errorf("the pod is answered %d %s", code, text)
	}
	for range 3 {
		if code, text := g.post(t, forger, path, strings.NewReader("{}")); code != 0 && code != http.StatusForbidden {
			t.Errorf("the pod is answered %d %s", code, text)
		}
	}
	if g.calls.Load() != 0 || g.refused(t, "client") == 0 || g.refused(t, "connections") == 0 {
		t.Errorf("%d calls of the handler, %d requests and %d connections refused",
			g.calls.Load(), g.refused(t, "client"), g.refused(t, "connections"))
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

// Many unknown clients wait for each other. An API server that is known does not wait.
func TestManyForgers(t *testing.T) {
	pods := &made{why: map[string]string{}}
	for i := range 60 {
		pods.why[fmt.Sprintf("127.0.1.%d", i)] = "the client is a pod"
	}
	g := start(t, serving.Options{Clients: serving.Clients{Check: pods.check}})
	known := newClient(t, "127.0.0.2")
	begin := time.Now()
	for i := range 60 {
		if code, text := g.post(t, known, path, strings.NewReader("{}")); code != http.StatusOK {
			t.Fatalf("an API server is answered %d %s", code, text)
		}
		if code, _ := g.post(t, newClient(t, fmt.Sprintf("127.0.1.%d", i)), path,
			strings.NewReader("{}")); code != http.StatusForbidden {
			t.Fatalf("pod %d is answered %d", i, code)
		}
	}
	// 20 at once and 5 a second; on a busy machine the requests take seconds.
	took := time.Since(begin)
	if n, most := int(pods.checks.Load()), 21+int(took/(time.Second/5)); n > most {
		t.Errorf("%d lookups for 61 clients within %s, want at most %d", n, took, most)
	}
}

// The address of a pod becomes known after the pod has started. All requests of its first moments wait, and none is
// answered.
func TestForgedReviewOfNewPod(t *testing.T) {
	cases := map[string]struct {
		why, late string
		code      int
	}{
		"a pod": {
			"its kubelet reports the address a moment late", "the client is a pod", http.StatusForbidden,
		},
		"a distant API server": {"no object has its address", "", http.StatusOK},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pods := &made{late: map[string]string{"127.0.0.3": c.late}}
			g := start(t, serving.Options{Clients: serving.Clients{Check: pods.check, Settle: 50 * time.Millisecond}})
			var all sync.WaitGroup
			for range 5 {
				all.Add(1)
				go func() {
					defer all.Done()

					if code, text := g.post(t, newClient(t, "127.0.0.3"), path, strings.NewReader("{}")); code != c.code {
						t.Errorf("%s: answered %d %s, want %d", c.why, code, text, c.code)
					}
				}()
			}
			all.Wait()
			if n := pods.checks.Load(); n != 2 {
				t.Errorf("%d checks, want 2", n)
			}
		})
	}
}

// A review of a pod does not wait until a distant API server is known: it would come too late, and the pod would be
// created bare. A client that is a pod is refused all the same.
func TestPromptReview(t *testing.T) {
	pods := &made{why: map[string]string{"127.0.0.3": "the client is a pod"}, late: map[string]string{"127.0.0.2": ""}}
	clients := serving.Clients{Check: pods.check, Settle: time.Hour, Prompt: []string{"/mutate-pod"}}
	g := start(t, serving.Options{Clients: clients}, "/mutate-pod", "/mutate-pod-new/a")
	for _, at := range []string{"/mutate-pod", "/mutate-pod-new/a"} {
		if code, text := g.post(t, newClient(t, "127.0.0.2"), at, strings.NewReader("{}")); code != http.StatusOK {
			t.Errorf("the API server at %s is answered %d %s", at, code, text)
		}
	}
	if code, text := g.post(t, newClient(t, "127.0.0.3"), "/mutate-pod",
		strings.NewReader("{}")); code != http.StatusForbidden {
		t.Errorf("the pod is answered %d %s", code, text)
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
		p := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		if change != nil {
			change(&p)
		}
		return p
	}
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	answered, unknown := serving.Verdict{}, serving.Verdict{Unknown: true}
	refused := serving.Verdict{Why: "the client is a pod: only API servers are answered"}
	unseen := serving.Verdict{Why: "the address is of an IP family in which pods cannot be looked up"}
	const address, other = "10.1.2.3", "10.9.9.9"
	node := func(ranges ...string) corev1.Node {
		n := corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: ranges}}
		n.Annotations = map[string]string{
			"example.com/tunnel": "10.7.7.7", "example.com/range": "10.8.8.8/24", "example.com/name": "a",
		}
		n.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: "a"}, {Type: corev1.NodeInternalIP, Address: other},
		}
		return n
	}
	cases := map[string]struct {
		why    string
		pods   []corev1.Pod
		server string
		want   serving.Verdict
		nodes  []corev1.Node
		// own is the first address of the pods beside the manager.
		own string
		// address is the default without one.
		address string
	}{
		"nothing": {
			why: "it may be outside of the cluster, or a pod that has just started", server: other, want: unknown,
		},
		"an API server": {why: "it is an endpoint of the Service kubernetes", server: address, want: answered},
		"a pod": {
			why: "no API server has its address", pods: []corev1.Pod{pod("shop", nil)}, server: other, want: refused,
		},
		"a pod that waits": {
			why:    "its network may be ready before its phase",
			pods:   []corev1.Pod{pod("shop", phase(corev1.PodPending))},
			server: other,
			want:   refused,
		},
		"a pod that has succeeded": {
			why:    "its address may be that of another",
			pods:   []corev1.Pod{pod("shop", phase(corev1.PodSucceeded))},
			server: other,
			want:   unknown,
		},
		"a pod that has failed": {
			why:    "its address may be that of another",
			pods:   []corev1.Pod{pod("shop", phase(corev1.PodFailed))},
			server: address,
			want:   answered,
		},
		"a node": {
			why:    "an API server may run there, in the network of the node",
			pods:   []corev1.Pod{pod("shop", func(p *corev1.Pod) { p.Spec.HostNetwork = true })},
			server: other,
			want:   answered,
		},
		"a tunnel": {
			why:    "API servers may come through pods of the system",
			pods:   []corev1.Pod{pod("kube-system", nil)},
			server: other,
			want:   answered,
		},
		"ended and running": {
			why:    "one that runs is enough",
			pods:   []corev1.Pod{pod("shop", phase(corev1.PodFailed)), pod("shop", nil)},
			server: other,
			want:   refused,
		},
		"the address of a node": {
			why: "no pod in its network is needed", nodes: []corev1.Node{node()}, address: other, want: answered,
		},
		"a tunnel of a node": {
			why: "network plugins note it in an annotation", nodes: []corev1.Node{node()}, address: "10.7.7.7", want: answered,
		},
		"a range of a node": {
			why:     "an annotation may have the length of the prefix",
			nodes:   []corev1.Node{node()},
			address: "10.8.8.8",
			want:    answered,
		},
		"the network of pods": {
			why:     "a tunnel device has the first address of the range of a node",
			nodes:   []corev1.Node{node("10.1.2.0/24")},
			address: "10.1.2.0",
			want:    answered,
		},
		"the gateway of pods": {
			why:     "a bridge has the second address",
			nodes:   []corev1.Node{node("10.1.2.0/24", "fd00:1::/64")},
			address: "fd00:1::1",
			want:    answered,
		},
		"in the range of a node": {why: "pods have the others", nodes: []corev1.Node{node("10.1.2.0/24")}, want: unknown},
		"a pod at the gateway": {
			why:   "a network plugin may not mind ranges",
			nodes: []corev1.Node{node("10.1.2.2/31")},
			pods:  []corev1.Pod{pod("shop", nil)},
			want:  refused,
		},
		"the first family": {why: "API servers find pods by their first address", own: "10.2.2.2", want: unknown},
		"the second family": {
			why: "API servers find no pod by its second address", own: "10.2.2.2", address: "fd00:1::5", want: unseen,
		},
		"the other first family": {why: "the first address may be of IPv6", own: "fd00:1::2", want: unseen},
		"a node, second family": {
			why:     "a node lists all of its addresses",
			own:     "fd00:1::2",
			nodes:   []corev1.Node{node()},
			address: other,
			want:    answered,
		},
	}
	for name, c := range cases {
		for _, err := range []error{nil, errors.New("down")} {
			t.Run(fmt.Sprintf("%s/%v", name, err), func(t *testing.T) {
				at := cmp.Or(c.address, address)
				reader := interceptor.NewClient(nil, interceptor.Funcs{
					List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
						all := (&client.ListOptions{}).ApplyOptions(o)
						switch into := into.(type) {
						case *corev1.PodList:
							if all.Namespace != "" {
								p := pod(all.Namespace, nil)
								p.Status.PodIP = c.own
								into.Items = []corev1.Pod{p}
								break
							}
							into.Items = c.pods
							if asked := all.FieldSelector.String(); asked != "status.podIP="+at || all.Raw == nil ||
								all.Raw.ResourceVersion != "0" {
								t.Errorf("asked for pods with %q", asked)
							}
						case *corev1.NodeList:
							into.Items = c.nodes
						case *discoveryv1.EndpointSliceList:
							into.Items = []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{c.server}}}}}
							if asked := all.Namespace + " " +
								all.LabelSelector.String(); asked != "default kubernetes.io/service-name=kubernetes" {
								t.Errorf("asked for endpoints of %q", asked)
							}
						}
						return err
					},
				})
				got, failed := serving.Pods(reader, "kube-system").Check(t.Context(), netip.MustParseAddr(at))
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
