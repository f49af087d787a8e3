package certificates

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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

// Ready names what is missing: the certificate, the CA in the targets, the server.
func TestReady(t *testing.T) {
	m, err := parse(filled(t, epoch()), false)
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(epoch())
	k := &Keeper{names: at(epoch(), nil).names, clock: clock}
	var down error
	k.started = func(*http.Request) error { return down }
	now, broken := epoch(), errors.New("the server does not listen")
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "no certificate yet"},
		{func() { k.serving.Store(m) }, "not in all webhook configurations"},
		{func() { k.settled.Store(&now) }, ""},
		{func() { down = broken }, broken.Error()},
		{func() { clock.Step(10 * 365 * day) }, "not valid"},
	} {
		step.change()
		err := k.Ready(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("want %q, got %v", step.want, err)
		}
	}
}
