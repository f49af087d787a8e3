package serving_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
	err    error
}

func (m *made) refuse(_ context.Context, address netip.Addr) (string, error) {
	m.checks.Add(1)
	return m.why[address.String()], m.err
}

// A review that a pod made up reaches no handler. Its address is looked up once, and afterwards it cannot connect.
func TestForgedReview(t *testing.T) {
	pods := &made{why: map[string]string{"127.0.0.3": "the client is a pod"}}
	g := start(t, serving.Options{Clients: serving.Clients{Refuse: pods.refuse, Public: []string{"/healthz"}}}, "/healthz")
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
	g := start(t, serving.Options{Clients: serving.Clients{Refuse: pods.refuse}})
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

// While pods cannot be read, reviews are answered: else an outage of the API server's list would stop all creations.
func TestUncheckedClient(t *testing.T) {
	pods := &made{err: errors.New("down")}
	g := start(t, serving.Options{Clients: serving.Clients{Refuse: pods.refuse}})
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
	cases := map[string]struct {
		why     string
		pods    []corev1.Pod
		err     error
		refused bool
	}{
		"no pod":                   {"it is a node, or outside of the cluster", nil, nil, false},
		"a pod":                    {"no API server has its address", []corev1.Pod{pod("shop", nil)}, nil, true},
		"a pod that waits":         {"its network may be ready before its phase says so", []corev1.Pod{pod("shop", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })}, nil, true},
		"a pod that has succeeded": {"its address may be another's", []corev1.Pod{pod("shop", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, nil, false},
		"a pod that has failed":    {"its address may be another's", []corev1.Pod{pod("shop", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, nil, false},
		"a pod of the node":        {"it shares the address of an API server", []corev1.Pod{pod("shop", func(p *corev1.Pod) { p.Spec.HostNetwork = true })}, nil, false},
		"a tunnel":                 {"API servers may come through pods of the system", []corev1.Pod{pod("kube-system", nil)}, nil, false},
		"ended and running":        {"one that runs is enough", []corev1.Pod{pod("shop", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), pod("shop", nil)}, nil, true},
		"unreadable":               {"the caller decides", nil, errors.New("down"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var asked string
			reader := interceptor.NewClient(nil, interceptor.Funcs{
				List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
					all := (&client.ListOptions{}).ApplyOptions(o)
					asked = all.FieldSelector.String()
					into.(*corev1.PodList).Items = c.pods
					return c.err
				},
			})
			why, err := serving.Pods(reader, "kube-system")(t.Context(), netip.MustParseAddr("10.1.2.3"))
			if (why != "") != c.refused || !errors.Is(err, c.err) {
				t.Errorf("%s: refused with %q, %v", c.why, why, err)
			}
			if asked != "spec.hostNetwork=false,status.podIP=10.1.2.3" {
				t.Errorf("asked for %q", asked)
			}
		})
	}
}
