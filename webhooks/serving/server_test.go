package serving_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/webhooks/serving"
)

func TestOptions(t *testing.T) {
	cases := map[string]struct {
		why  string
		o    serving.Options
		want string
	}{
		"none":            {"the defaults fit together", serving.Options{}, ""},
		"names alone":     {"without a CA no name is checked", serving.Options{ClientNames: []string{"a"}}, "need a CA"},
		"a negative wait": {"it would refuse all", serving.Options{Limits: serving.Limits{Wait: -1}}, "must be positive"},
		"little memory": {
			"several bodies must fit", serving.Options{Limits: serving.Limits{Memory: 8 << 20}}, "at most an eighth",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := serving.New(c.o); c.want == "" && err != nil || c.want != "" &&
				(err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", c.why, err, c.want)
			}
		})
	}
}

// A server without a certificate, or without a port, reports that.
func TestStartFails(t *testing.T) {
	g := start(t, serving.Options{})
	var port int
	if _, err := fmt.Sscanf(g.address, "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]serving.Options{
		"must set GetCertificate": {},
		"address already in use":  {Host: "127.0.0.1", Port: port, TLSOpts: []func(*tls.Config){serverCertificate(t)}},
	} {
		server, err := serving.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the server ended with %v, want %s", err, want)
		}
	}
}

// A request that runs when the server stops is answered.
func TestStop(t *testing.T) {
	g := start(t, serving.Options{})
	got := make(chan answer, 1)
	go func() { got <- g.post(t, newClient(t, apiServer), path, strings.NewReader("{}"), true) }()
	eventually(t, "the handler runs", func() bool { return g.running.Load() == 1 })
	g.stop()
	eventually(t, "the port is closed", func() bool {
		c, err := dialer(apiServer).DialContext(t.Context(), "tcp", g.address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(g.hold)
	if a := <-got; a.code != http.StatusOK {
		t.Errorf("answered %+v", a)
	}
}

func TestCertificates(t *testing.T) {
	ca, shown := authority(t, "kube-apiserver", "kube-proxy")
	_, foreign := authority(t, "kube-apiserver")
	g := start(t, serving.Options{
		ClientCA: ca, ClientNames: []string{"kube-apiserver"}, OpenPaths: []string{"/healthz"},
	}, "/healthz")
	cases := map[string]struct {
		why   string
		shown []tls.Certificate
		path  string
		code  int
	}{
		"none":             {"any pod can send a review", nil, path, http.StatusUnauthorized},
		"of an API server": {"the CA has signed its name", []tls.Certificate{shown["kube-apiserver"]}, path, http.StatusOK},
		"another name":     {"a CA signs for others", []tls.Certificate{shown["kube-proxy"]}, path, http.StatusUnauthorized},
		"another CA":       {"any CA can sign the name", []tls.Certificate{foreign["kube-apiserver"]}, path, 0},
		"an open path":     {"a health check discloses nothing", nil, "/healthz", http.StatusOK},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := g.calls.Load()
			got := g.post(t, newClient(t, apiServer, c.shown...), c.path, strings.NewReader("{}"), false)
			if got.code != c.code {
				t.Errorf("%s: %+v, want %d", c.why, got, c.code)
			}
			if ran := g.calls.Load() > before; ran != (c.code == http.StatusOK) {
				t.Errorf("%s: the handler ran: %t", c.why, ran)
			}
		})
	}
	if n := g.refused(t, "certificate"); n != 2 {
		t.Errorf("%d refusals are counted, want 2", n)
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
