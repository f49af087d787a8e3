package podprobe

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/test/rig/critest"
)

// commands is a runtime that runs commands as a test says.
type commands func(c cri.Command) (cri.Output, error)

func (commands) Containers(context.Context, cri.Query) ([]cri.Container, error) { return nil, nil }

func (f commands) Exec(_ context.Context, _ string, c cri.Command) (cri.Output, error) { return f(c) }

func portOf(t *testing.T, address string) intstr.IntOrString {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return intstr.FromInt32(int32(n))
}

// closedPort is a port that nothing listens on.
func closedPort(t *testing.T) intstr.IntOrString {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return portOf(t, l.Addr().String())
}

// outcome is written as "good|bad output" or "error text".
func outcome(h handlers, p corev1.ProbeHandler, ip string, timeout time.Duration) string {
	spec := v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{ProbeHandler: p}}
	result, err := h.run(context.Background(), &spec, target{container: "c1", ip: ip, timeout: timeout})
	switch {
	case err != nil:
		return "error " + err.Error()
	case result.Succeeded:
		return "good " + result.Output
	}
	return "bad " + result.Output
}

func TestExec(t *testing.T) {
	for why, c := range map[string]struct {
		output cri.Output
		err    error
		want   string
	}{
		"exit 0 succeeds with stdout": {cri.Output{Stdout: []byte("ok"), Stderr: []byte("x")}, nil, "good ok"},
		"another exit code fails with stderr": {
			cri.Output{Stdout: []byte("ok"), Stderr: []byte("no"), ExitCode: 3}, nil, "bad no",
		},
		"a timeout fails": {
			cri.Output{}, fmt.Errorf("run: %w", cri.ErrExecTimeout), "bad command timed out after 3s",
		},
		"another error is unknown": {
			cri.Output{}, cri.ErrUnavailable, "error run command: container runtime unavailable",
		},
	} {
		h := newHandlers(commands(func(command cri.Command) (cri.Output, error) {
			if command.Timeout != 3*time.Second || command.MaxOutput != 10<<10 || command.Args[0] != "test" {
				return cri.Output{}, fmt.Errorf("got %+v", command)
			}
			return c.output, c.err
		}))
		if got := outcome(h, corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test"}}},
			"10.0.0.1", 3*time.Second); got != c.want {
			t.Errorf("%s: %q, want %q", why, got, c.want)
		}
	}
	for why, p := range map[string]corev1.ProbeHandler{"no handler": {}, "no command": {Exec: &corev1.ExecAction{}}} {
		if got := outcome(newHandlers(nil), p, "10.0.0.1", time.Second); !strings.HasPrefix(got, "error ") {
			t.Errorf("%s: %q", why, got)
		}
	}
}

// Acceptance 20 and 27 of the daemon.
func TestTCP(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for why, c := range map[string]struct {
		socket corev1.TCPSocketAction
		ip     string
		want   string
	}{
		"open":   {corev1.TCPSocketAction{Port: portOf(t, l.Addr().String())}, "127.0.0.1", "good "},
		"closed": {corev1.TCPSocketAction{Port: closedPort(t)}, "127.0.0.1", "bad dial tcp 127.0.0.1:"},
		"no port": {
			corev1.TCPSocketAction{Port: intstr.FromInt32(65536)}, "127.0.0.1", "bad dial tcp: address 65536: invalid port",
		},
		"no address": {
			corev1.TCPSocketAction{Port: portOf(t, l.Addr().String())}, "", "error the address of the pod is unknown",
		},
		"host": {
			corev1.TCPSocketAction{Port: portOf(t, l.Addr().String()), Host: "127.0.0.1"},
			"127.0.0.1",
			"error the probe asks another host",
		},
	} {
		if got := outcome(newHandlers(nil), corev1.ProbeHandler{TCPSocket: &c.socket}, c.ip,
			time.Second); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", why, got, c.want)
		}
	}
}

// pages are served to probes.
func pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %q %q %s",
			r.Host, r.UserAgent(), r.Header.Values("Accept"), r.Header.Values("X-Probe"), r.URL.RawQuery)
	})
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/ok?there", http.StatusFound)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
	})
	mux.HandleFunc("/named", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/ok", http.StatusFound)
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/round", http.StatusFound)
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	return mux
}

func TestHTTP(t *testing.T) {
	plain, secure := httptest.NewServer(pages()), httptest.NewTLSServer(pages())
	defer plain.Close()
	defer secure.Close()
	here, there := portOf(t, plain.Listener.Addr().String()), portOf(t, secure.Listener.Addr().String())
	at := func(path string) corev1.HTTPGetAction { return corev1.HTTPGetAction{Path: path, Port: here} }
	const elsewhere = "good Probe terminated redirects, Response body: <a href="
	for why, c := range map[string]struct {
		get     corev1.HTTPGetAction
		timeout time.Duration
		want    string
	}{
		"200": {at("/ok?a=b"), 0, fmt.Sprintf(`good 127.0.0.1:%s kube-probe ["*/*"] [] a=b`, here.String())},
		"TLS": {
			corev1.HTTPGetAction{Path: "/ok", Port: there, Scheme: "HTTPS"}, 0, "good 127.0.0.1:" + there.String(),
		},
		"headers": {
			corev1.HTTPGetAction{Path: "/ok", Port: here, HTTPHeaders: []corev1.HTTPHeader{
				{Name: "host", Value: "shop"},
				{Name: "user-agent", Value: "me"},
				{Name: "Accept"},
				{Name: "X-Probe", Value: "1"},
				{Name: "X-Probe", Value: "2"},
			}}, 0, `good shop me [] ["1" "2"] `,
		},
		"redirect":           {at("/here"), 0, `good 127.0.0.1:` + here.String() + ` kube-probe ["*/*"] [] there`},
		"redirect elsewhere": {at("/to?http://192.0.2.1/"), 0, elsewhere},
		"redirect to another port": {
			at("/to?https://127.0.0.1:" + there.String() + "/ok"), 0, "good 127.0.0.1:" + there.String(),
		},
		"redirect to the Host header": {
			corev1.HTTPGetAction{
				Path: "/named", Port: here, HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "192.0.2.1"}},
			},
			0, elsewhere,
		},
		"redirects for ever": {at("/round"), 0, `bad Get "/round": stopped after 10 redirects`},
		"500":                {at("/broken"), 0, "bad HTTP probe failed with statuscode: 500"},
		"404":                {at("/none"), 0, "bad HTTP probe failed with statuscode: 404"},
		"large":              {at("/large"), 0, "good " + strings.Repeat("x", 10<<10)},
		"slow": {
			at("/slow"), 100 * time.Millisecond,
			`bad Get "http://127.0.0.1:` + here.String() + `/slow": context deadline exceeded`,
		},
		"path with a host": {at("//192.0.2.1/ok"), 0, "good 127.0.0.1:" + here.String()},
		"closed":           {corev1.HTTPGetAction{Path: "/ok", Port: closedPort(t)}, 0, "bad Get "},
		"port 0":           {corev1.HTTPGetAction{Path: "/ok"}, 0, "error port 0 is none"},
		"port 65536": {
			corev1.HTTPGetAction{Path: "/ok", Port: intstr.FromInt32(65536)}, 0, "error port 65536 is none",
		},
		"host": {
			corev1.HTTPGetAction{Path: "/ok", Port: here, Host: "127.0.0.1"}, 0, "error the probe asks another host",
		},
		"malformed path": {at("%zz"), 0, "error parse path"},
	} {
		if c.timeout == 0 {
			c.timeout = 10 * time.Second
		}
		if got := outcome(newHandlers(nil), corev1.ProbeHandler{HTTPGet: &c.get},
			"127.0.0.1", c.timeout); !strings.HasPrefix(got, c.want) || len(got) > 5+10<<10 {
			t.Errorf("%s: %.200q, want %.200q", why, got, c.want)
		}
	}
}

// The server is that of gRPC itself.
func TestGRPC(t *testing.T) {
	port := int32(critest.ServeHealth(t, map[string]bool{"good": true, "bad": false}))
	plain := httptest.NewServer(pages())
	defer plain.Close()
	for why, c := range map[string]struct {
		probe corev1.GRPCAction
		want  string
	}{
		"the server": {corev1.GRPCAction{Port: port}, "good service is healthy"},
		"empty name": {corev1.GRPCAction{Port: port, Service: ptr.To("")}, "good service is healthy"},
		"healthy":    {corev1.GRPCAction{Port: port, Service: ptr.To("good")}, "good service is healthy"},
		"not healthy": {
			corev1.GRPCAction{Port: port, Service: ptr.To("bad")},
			"bad gRPC probe failed: the service has the health 2 rather than 1, which is serving",
		},
		"unknown": {
			corev1.GRPCAction{Port: port, Service: ptr.To("none")}, `bad gRPC probe failed: status "5": unknown service`,
		},
		"another kind": {corev1.GRPCAction{Port: portOf(t, plain.Listener.Addr().String()).IntVal}, "bad Post "},
		"closed":       {corev1.GRPCAction{Port: closedPort(t).IntVal}, "bad Post "},
	} {
		if got := outcome(newHandlers(nil), corev1.ProbeHandler{GRPC: &c.probe},
			"127.0.0.1", 10*time.Second); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", why, got, c.want)
		}
	}
}

func FuzzHealthStatus(f *testing.F) {
	for _, text := range []string{
		"", "\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x02\x08\x01", "\x00\xff\xff\xff\xff\x08",
		"\x01\x00\x00\x00\x02\x08\x01",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if status, err := healthStatus(body); err == nil && status != 0 && len(body) < 7 {
			t.Errorf("%q has status %d", body, status)
		}
	})
}
