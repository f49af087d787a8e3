package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// stage is a server of which only the handlers and the end are looked at.
type stage struct {
	webhook.Server

	handlers map[string]http.Handler
	ended    chan struct{}
}

func (s *stage) Register(path string, hook http.Handler) { s.handlers[path] = hook }

func (s *stage) Start(ctx context.Context) error {
	<-ctx.Done()
	close(s.ended)
	return nil
}

// closes says whether an answer asks for another connection.
func (s *stage) closes(t *testing.T) bool {
	t.Helper()
	answer := httptest.NewRecorder()
	s.handlers["/convert"].ServeHTTP(answer,
		httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/convert", http.NoBody))
	if answer.Code != http.StatusTeapot {
		t.Errorf("answered %d", answer.Code)
	}
	return answer.Header().Get("Connection") == "close"
}

// A connection that is kept is one that the server closes under a call, unless the client has been told before.
func TestServerTakesLeave(t *testing.T) {
	server := &stage{handlers: map[string]http.Handler{}, ended: make(chan struct{})}
	waits := func(ctx context.Context) error { <-ctx.Done(); return nil }
	s := &kept{Server: server, keep: waits}
	s.Register("/convert", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	if server.closes(t) {
		t.Error("connections are closed in times of peace")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	cancel()
	told := false
	for !told {
		select {
		case <-server.ended:
			t.Fatal("the server ended, and told nobody")
		default:
			told = server.closes(t)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServerEndsWithItsKeeper(t *testing.T) {
	server := &stage{handlers: map[string]http.Handler{}, ended: make(chan struct{})}
	broken := errors.New("no certificate")
	s := &kept{Server: server, keep: func(context.Context) error { return broken }}
	if err := s.Start(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v, want what the keeper says", err)
	}
}

// A replica must not say that it is not ready because its certificate changed while it asked itself.
func TestReadyWhileTheCertificateChanges(t *testing.T) {
	read := func() *material {
		m, err := parse(filled(t, epoch()), false)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	k := &Keeper{names: at(epoch(), nil).names, options: Options{Clock: clocktesting.NewFakeClock(epoch())}}
	before, after := read(), read()
	k.serving.Store(before)
	k.settled.Store(true)
	config := &tls.Config{}
	k.TLS(config)
	serving := config.GetCertificate
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		k.serving.Store(after)
		return serving(hello)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	server.TLS = config
	server.StartTLS()
	defer server.Close()
	k.options.Port = server.Listener.Addr().(*net.TCPAddr).Port
	if err := k.Ready(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)); err != nil {
		t.Error(err)
	}
	k.serving.Store(before)
	if err := k.answers(t.Context(), before); err == nil {
		t.Error("a certificate of another CA is taken for ours")
	}
}

// All pods can ask for the readiness. Each answer is used for a second, so that many questions cost one handshake.
func TestReadyIsAskedOnceInASecond(t *testing.T) {
	clock := clocktesting.NewFakeClock(epoch())
	k := &Keeper{options: Options{Clock: clock}}
	var asked atomic.Int64
	down := errors.New("down")
	release := make(chan struct{})
	look := func(ctx context.Context) error {
		asked.Add(1)
		<-release
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return down
	}
	gone, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { first <- k.readiness.answer(gone, clock, look) }()
	for asked.Load() == 0 {
		runtime.Gosched()
	}
	cancel() // who asks first may go
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	var all sync.WaitGroup
	for range 800 {
		all.Add(1)
		go func() {
			defer all.Done()

			if err := k.readiness.answer(t.Context(), clock, look); !errors.Is(err, down) {
				t.Errorf("%v, want that of the one question", err)
			}
		}()
	}
	close(release)
	all.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("800 probes ask the server %d times", n)
	}
	for _, c := range []struct {
		why  string
		step time.Duration
		want int64
	}{
		{"an error is used for a second, too", 900 * time.Millisecond, 1},
		{"it is asked again", 200 * time.Millisecond, 2},
		{"the clock was set back", -time.Hour, 3},
	} {
		clock.SetTime(clock.Now().Add(c.step))
		for range 3 {
			_ = k.readiness.answer(t.Context(), clock, look)
		}
		if n := asked.Load(); n != c.want {
			t.Errorf("%s: asked %d times, want %d", c.why, n, c.want)
		}
	}
}

// Ready makes no connection for a second.
func TestReadyConnectsOnce(t *testing.T) {
	m, err := parse(filled(t, epoch()), false)
	if err != nil {
		t.Fatal(err)
	}
	k := &Keeper{names: at(epoch(), nil).names, options: Options{Clock: clocktesting.NewFakeClock(epoch())}}
	k.serving.Store(m)
	k.settled.Store(true)
	config := &tls.Config{}
	k.TLS(config)
	var handshakes atomic.Int64
	certificate := config.GetCertificate
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		handshakes.Add(1)
		return certificate(hello)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = config
	server.StartTLS()
	defer server.Close()
	k.options.Port = server.Listener.Addr().(*net.TCPAddr).Port
	for range 100 {
		if err := k.Ready(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)); err != nil {
			t.Fatal(err)
		}
	}
	if n := handshakes.Load(); n != 1 {
		t.Errorf("100 probes make %d handshakes", n)
	}
}
