package cluster

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/nodes"
)

// Registry gives all nodes a registry of the test's own. It has what Push pushes, and answers as the test wants: serve
// gets what would answer well. An image's name there begins with what Registry returns: "<host>/web:1" is what was
// pushed as "web:1". For Real alone.
func (c *Cluster) Registry(t testing.TB, serve func(well http.Handler) http.Handler) (host string) {
	t.Helper()
	config := c.real(t)
	pushed, err := url.Parse(nodes.RegistryURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(nodes.Host, "0"))
	if err != nil {
		t.Fatalf("listen as a registry: %v", err)
	}
	host = listener.Addr().String()
	distrust, err := config.Trust(host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(pushed)
		r.Out.Host = r.In.Host // the locations that it answers with are to lead back here
	}}
	server := &http.Server{Handler: serve(proxy), ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close() // also what is under way
		<-served
		if err := distrust(); err != nil {
			t.Error(err)
		}
	})
	return host
}
