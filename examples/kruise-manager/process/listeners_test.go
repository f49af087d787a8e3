package process

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// shelf is a manager that only keeps what is added.
type shelf struct {
	ctrl.Manager

	servers []*manager.Server
}

func (s *shelf) Add(r manager.Runnable) error {
	s.servers = append(s.servers, r.(*manager.Server))
	return nil
}

func (*shelf) GetConfig() *rest.Config     { return &rest.Config{} }
func (*shelf) GetHTTPClient() *http.Client { return http.DefaultClient }

// serve starts what was added.
func (s *shelf) serve(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, server := range s.servers {
		all.Add(1)
		go func() {
			defer all.Done()

			if err := server.Start(ctx); err != nil {
				t.Error(err)
			}
		}()
	}
	t.Cleanup(func() { cancel(); all.Wait() })
}

// from is a client at an address of the loopback.
func from(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	return &http.Client{Timeout: time.Minute, Transport: transport}
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// A pod holds as many connections of the ports as it can. The kubelet's probe and a reader of metrics are answered.
func TestPortsUnderFlood(t *testing.T) {
	const kubelet, pod, prometheus = "127.0.0.9", "127.0.0.2", "127.0.0.3"
	mgr := &shelf{}
	metrics, err := metricsHandler(t.Context(), mgr, false)
	if err != nil {
		t.Fatal(err)
	}
	checked := newProbed(mgr)
	for _, of := range []port{
		{"probes", "127.0.0.1:0", checked.handler(), false},
		{"metrics", "127.0.0.1:0", metrics, false},
		{"none", "0", nil, false},
	} {
		if err := addPort(t.Context(), mgr, of); err != nil {
			t.Fatal(err)
		}
	}
	if len(mgr.servers) != 2 {
		t.Fatalf("%d ports are served", len(mgr.servers))
	}
	mgr.serve(t)
	for i, c := range []struct{ path, client string }{{"/readyz", kubelet}, {"/metrics", prometheus}} {
		address := mgr.servers[i].Listener.Addr().String()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var opened atomic.Int64
		for range 64 {
			all.Add(1)
			go func() {
				defer all.Done()
				hold(ctx, pod, address, &opened)
			}()
		}
		for late := time.Now().Add(time.Minute); opened.Load() < 200; runtime.Gosched() {
			if time.Now().After(late) {
				t.Fatalf("the port of %s keeps silent connections: %d were opened", c.path, opened.Load())
			}
		}
		for range 20 {
			if code, text := get(t, from(c.client), "http://"+address+c.path); code != http.StatusOK {
				t.Fatalf("%s is answered %d %s", c.path, code, text)
			}
		}
		cancel()
		all.Wait()
	}
}

// hold keeps a silent connection open, and opens another one when it is closed.
func hold(ctx context.Context, from, address string, opened *atomic.Int64) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	for ctx.Err() == nil {
		c, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			runtime.Gosched()
			continue
		}
		opened.Add(1)
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		_, _ = c.Read(make([]byte, 1))
		stop()
		_ = c.Close()
	}
}

// Probes have the paths and texts of controller-runtime.
func TestProbes(t *testing.T) {
	mgr := &shelf{}
	checked := newProbed(mgr)
	handler := checked.handler()
	notSynced := func(*http.Request) error { return errors.New("not synced") }
	if err := errors.Join(checked.AddReadyzCheck("caches", notSynced),
		checked.AddHealthzCheck("ping", healthz.Ping)); err != nil {
		t.Fatal(err)
	}
	if err := addPort(t.Context(), mgr, port{"probes", "127.0.0.1:0", handler, false}); err != nil {
		t.Fatal(err)
	}
	mgr.serve(t)
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/healthz":           {http.StatusOK, "ok"},
		"/healthz/ping":      {http.StatusOK, "ok"},
		"/readyz":            {http.StatusInternalServerError, "[-]caches failed: reason withheld"},
		"/readyz/caches":     {http.StatusInternalServerError, "internal server error: not synced"},
		"/readyz/?verbose=1": {http.StatusInternalServerError, "[-]caches failed"},
		"/":                  {http.StatusNotFound, ""},
	} {
		code, text := get(t, from("127.0.0.1"), "http://"+mgr.servers[0].Listener.Addr().String()+path)
		if code != want.code || !strings.Contains(text, want.text) {
			t.Errorf("%s is answered %d %q, want %d %q", path, code, text, want.code, want.text)
		}
	}
}
