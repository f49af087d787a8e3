package stopping_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/internal/stopping"
)

// asked is what a server was asked.
type asked struct {
	mu    sync.Mutex
	lines []string
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	line := r.Method + " " + r.URL.RequestURI()
	for _, name := range []string{"Host", "User-Agent", "Accept", "X-Drain", "Authorization"} {
		values := r.Header[name]
		if name == "Host" && !strings.HasPrefix(r.Host, "127.0.0.1:") {
			values = []string{r.Host}
		}
		if len(values) > 0 {
			line += " " + name + "=" + strings.Join(values, ",")
		}
	}
	a.mu.Lock()
	a.lines = append(a.lines, line)
	a.mu.Unlock()
	switch r.URL.Path {
	case "/away":
		http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
	case "/broken":
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func TestHTTPHook(t *testing.T) {
	const usual = " User-Agent=kube-lifecycle Accept=*/*"
	tests := map[string]struct {
		tls     bool
		scheme  string
		path    string
		headers []corev1.HTTPHeader
		want    []string
		failed  string
	}{
		"plain": {
			scheme: "http", path: "/drain?now=1", want: []string{"GET /drain?now=1" + usual},
		},
		"any status will do":                {scheme: "http", path: "/broken", want: []string{"GET /broken" + usual}},
		"over TLS, whatever certificate":    {tls: true, scheme: "https", path: "/", want: []string{"GET /" + usual}},
		"a redirect elsewhere is an answer": {scheme: "http", path: "/away", want: []string{"GET /away" + usual}},
		"headers, that of the host among them": {
			scheme: "http", path: "/",
			headers: []corev1.HTTPHeader{
				{Name: "host", Value: "shop.example"},
				{Name: "x-drain", Value: "a"},
				{Name: "X-Drain", Value: "b"},
				{Name: "user-agent", Value: "me"},
			},
			want: []string{"GET / Host=shop.example User-Agent=me Accept=*/* X-Drain=a,b"},
		},
		"https to a server that speaks http: again, without what was to travel encrypted": {
			scheme: "https", path: "/drain",
			headers: []corev1.HTTPHeader{{Name: "Authorization", Value: "Bearer secret"}, {Name: "X-Drain", Value: "a"}},
			want:    []string{"GET /drain" + usual + " X-Drain=a"},
		},
		"http to a server that speaks https is answered, with a refusal": {tls: true, scheme: "http", path: "/"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var server asked
			serve := httptest.NewServer
			if tt.tls {
				serve = httptest.NewTLSServer
			}
			listening := serve(&server)
			defer listening.Close()
			address := listening.Listener.Addr().String()
			failed := runHook(t, containerrestart.HTTPGet{URL: tt.scheme + "://" + address + tt.path, Headers: tt.headers})
			if diff := cmp.Diff(tt.want, server.lines); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if failed != tt.failed {
				t.Errorf("failure %q, want %q", failed, tt.failed)
			}
		})
	}
}

// TestHTTPHookRefused tells why, and not what was asked for.
func TestHTTPHookRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	failed := runHook(t, containerrestart.HTTPGet{URL: "http://" + address + "/drain?token=secret"})
	if !strings.Contains(failed, "connection refused") || strings.Contains(failed, "secret") {
		t.Errorf("failure %q", failed)
	}
}

// TestHTTPHookCut has a server that never answers.
func TestHTTPHookCut(t *testing.T) {
	quit := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-quit }))
	defer server.Close()
	defer close(quit)
	if failed := runHook(t, containerrestart.HTTPGet{URL: server.URL}); failed != "" {
		t.Errorf("failure %q", failed)
	}
}

// runHook stops a container with a hook, and returns what is reported of its failure.
func runHook(t *testing.T, get containerrestart.HTTPGet) string {
	t.Helper()
	s := &story{began: time.Now()}
	over := make(chan struct{})
	workers, err := stopping.New(stopping.Options{By: "test", Most: 1, Event: s.event, Now: time.Now}, func(string) {
		close(over)
	})
	if err != nil {
		t.Fatal(err)
	}
	workers.Begin(t.Context(), "k", s.order(2*time.Second, &containerrestart.Hook{HTTP: &get}))
	<-over
	lines := s.told()
	for _, line := range lines {
		if _, failed, ok := strings.Cut(line, "PreStopHook failed: "); ok {
			return failed
		}
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, "stop 4f2a within") {
		t.Errorf("it ends with %q", last)
	}
	return ""
}
