package serving_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kruisekit/kruisekit/webhooks/serving"
)

// path of the handler under test, which answers with the length of the body.
const path = "/review"

// ground is a server on a port of the loopback.
type ground struct {
	address string
	// calls of the handler, and how many of them run.
	calls, running atomic.Int64
	// hold keeps handlers until it is closed, but not those of the free path.
	hold     chan struct{}
	free     string
	registry *prometheus.Registry
}

// start starts a server, whose handler is registered at the paths.
func start(t *testing.T, o serving.Options, paths ...string) *ground {
	t.Helper()
	g := &ground{registry: prometheus.NewPedanticRegistry()}
	o.Host, o.Port, o.Registerer = "127.0.0.1", freePort(t), g.registry
	o.TLSOpts = []func(*tls.Config){serverCertificate(t)}
	server, err := serving.New(o)
	if err != nil {
		t.Fatal(err)
	}
	g.address = net.JoinHostPort(o.Host, strconv.Itoa(o.Port))
	g.run(t, server, append(paths, path))
	return g
}

func (g *ground) run(t *testing.T, server webhook.Server, paths []string) {
	t.Helper()
	for _, p := range paths {
		server.Register(p, http.HandlerFunc(g.answer))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	eventually(t, "the server listens", func() bool {
		c, err := net.Dial("tcp", g.address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
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
	if g.hold != nil && r.URL.Path != g.free {
		<-g.hold
	}
	fmt.Fprint(w, len(body))
}

// refused is how many requests and connections were refused for a reason.
func (g *ground) refused(t *testing.T, reason string) int {
	t.Helper()
	families, err := g.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "kruisekit_webhook_refused_total" && m.GetLabel()[0].GetValue() == reason {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	t.Fatalf("no counter of %q", reason)
	return 0
}

// gauge is what a gauge shows, of the series that has all these values of labels.
func (g *ground) gauge(t *testing.T, name string, values ...string) int {
	t.Helper()
	families, err := g.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			found := 0
			for _, l := range m.GetLabel() {
				if slices.Contains(values, l.GetValue()) {
					found++
				}
			}
			if f.GetName() == name && found == len(values) {
				return int(m.GetGauge().GetValue())
			}
		}
	}
	t.Fatalf("no gauge %s of %q", name, values)
	return 0
}

// dialer of connections from one address of the loopback.
func dialer(from string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
}

// client of a server, at an address of the loopback, with certificates.
func newClient(t *testing.T, from string, shown ...tls.Certificate) *http.Client {
	t.Helper()
	transport := &http.Transport{
		DialContext:       dialer(from).DialContext,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: shown},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// post returns the code and the text of an answer.
func (g *ground) post(t *testing.T, c *http.Client, at string, body io.Reader) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+g.address+at, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(bytes.TrimSpace(text))
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
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

// authority signs certificates of clients.
func authority(t *testing.T, names ...string) (*x509.CertPool, map[string]tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	pool, all := x509.NewCertPool(), map[string]tls.Certificate{}
	for _, name := range append([]string{"ca"}, names...) {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		if name == "ca" {
			template = ca
		}
		der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
		if name == "ca" {
			signed, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			pool.AddCert(signed)
		}
	}
	return pool, all
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !holds() {
		select {
		case <-late.Done():
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}
