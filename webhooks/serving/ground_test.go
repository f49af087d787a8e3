package serving_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/webhooks/serving"
)

const (
	// path of the handler under test, which answers with the length of the body.
	path = "/review"
	// attacker and apiServer are addresses of the loopback that count, as 127.0.0.1 does not.
	attacker, apiServer = "127.0.0.2", "127.0.0.9"
	// late is only an upper bound: no test waits for it to pass.
	late = time.Minute
)

// ground is a server on a port of the loopback.
type ground struct {
	address string
	// calls of the handler, and how many of them run.
	calls, running atomic.Int64
	// hold keeps handlers until it is closed.
	hold     chan struct{}
	registry *prometheus.Registry
	stop     context.CancelFunc
}

// start starts a server, whose handler is registered at the paths. Another process can take a port that was free: then
// the server gets another one.
func start(t *testing.T, o serving.Options, paths ...string) *ground {
	t.Helper()
	for range 10 {
		if g := tryStart(t, o, append(paths, path)); g != nil {
			return g
		}
	}
	t.Fatal("no port is free")
	return nil
}

func tryStart(t *testing.T, o serving.Options, paths []string) *ground {
	t.Helper()
	g := &ground{registry: prometheus.NewPedanticRegistry(), hold: make(chan struct{})}
	o.Host, o.Port, o.Registerer = "0.0.0.0", freePort(t), g.registry
	o.TLSOpts = []func(*tls.Config){serverCertificate(t)}
	server, err := serving.New(o)
	if err != nil {
		t.Fatal(err)
	}
	g.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port))
	for _, p := range paths {
		server.Register(p, http.HandlerFunc(g.answer))
	}
	started := server.StartedChecker()
	if started(nil) == nil {
		t.Error("the server has started before it listens")
	}
	ctx, cancel := context.WithCancel(t.Context())
	g.stop = cancel
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	var failed error
	eventually(t, "the server listens or ends", func() bool {
		select {
		case failed = <-ended:
		default:
		}
		return failed != nil || started(nil) == nil
	})
	if failed != nil {
		t.Log(failed)
		cancel()
		return nil
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return g
}

func (g *ground) answer(w http.ResponseWriter, r *http.Request) {
	g.calls.Add(1)
	g.running.Add(1)
	defer g.running.Add(-1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.Header.Get("Hold") != "" {
		<-g.hold
	}
	fmt.Fprint(w, len(body))
}

// value returns that of a metric with these labels.
func (g *ground) value(t *testing.T, name string, labels ...string) int {
	t.Helper()
	families, err := g.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var has []string
			for _, l := range m.GetLabel() {
				has = append(has, l.GetValue())
			}
			if f.GetName() == name && fmt.Sprint(has) == fmt.Sprint(labels) {
				return int(m.GetGauge().GetValue() + m.GetCounter().GetValue())
			}
		}
	}
	t.Fatalf("no metric %s of %q", name, labels)
	return 0
}

func (g *ground) refused(t *testing.T, reason string) int {
	t.Helper()
	return g.value(t, "kruisekit_webhook_refused_total", reason)
}

// dial opens a connection from an address of the loopback.
func (g *ground) dial(t *testing.T, from string) net.Conn {
	t.Helper()
	c, err := dialer(from).DialContext(t.Context(), "tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func dialer(from string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
}

// newClient returns a client at an address of the loopback, with certificates.
func newClient(t *testing.T, from string, shown ...tls.Certificate) *http.Client {
	t.Helper()
	transport := &http.Transport{
		DialContext:       dialer(from).DialContext,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: shown},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: late}
}

// answer is what a client gets; err is nil with a code.
type answer struct {
	code       int
	text       string
	retryAfter string
	err        error
}

// post sends a review, which the handler holds where that is wanted.
func (g *ground) post(t *testing.T, c *http.Client, at string, body io.Reader, hold bool) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+g.address+at, body)
	if err != nil {
		return answer{err: err}
	}
	if hold {
		request.Header.Set("Hold", "1")
	}
	response, err := c.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(bytes.TrimSpace(text)), response.Header.Get("Retry-After"), err}
}

// mustAnswer has a client send a small review, which the server answers.
func (g *ground) mustAnswer(t *testing.T, from string) {
	t.Helper()
	if got := g.post(t, newClient(t, from), path, bytes.NewReader([]byte("{}")), false); got.code != http.StatusOK {
		t.Errorf("%s is answered %+v", from, got)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// serverCertificate is that of httptest.
func serverCertificate(t *testing.T) func(*tls.Config) {
	t.Helper()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	shown := other.TLS.Certificates[0]
	return func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &shown, nil }
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	over, cancel := context.WithTimeout(t.Context(), late)
	defer cancel()
	for !holds() {
		select {
		case <-over.Done():
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}
