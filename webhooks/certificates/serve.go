package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// answer is how long the own server may take to say that it is there.
	answer = 2 * time.Second
	// used is how long its answer is used.
	used = time.Second
)

// HealthPath is where With answers every request with success.
const HealthPath = "/healthz"

// TLS makes a server hand out the certificate, a new one from the next connection on, over TLS 1.2 at least. It is one
// of webhook.Options.TLSOpts.
func (k *Keeper) TLS(c *tls.Config) {
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		m := k.serving.Load()
		if m == nil {
			return nil, errors.New("there is no certificate yet")
		}
		return m.serving, nil
	}
}

// With gives a server that starts together with the Keeper, and answers under HealthPath. In a manager that is before
// the caches start, which is necessary: filling them may need the conversion webhook.
//
// When it is to stop, it goes on for two seconds, in which each answer asks the client to use another connection. API
// servers keep theirs, and a call that comes in while it is being closed fails.
func (k *Keeper) With(server webhook.Server) webhook.Server {
	s := &kept{Server: server, keep: k.Start}
	s.Register(HealthPath, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return s
}

// parting is how long clients are asked to disconnect before connections are closed.
const parting = 2 * time.Second

type kept struct {
	webhook.Server

	keep    func(context.Context) error
	leaving atomic.Bool
}

// Register serves a path.
func (s *kept) Register(path string, hook http.Handler) {
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.leaving.Load() {
			w.Header().Set("Connection", "close") // in HTTP/2 it has the server say GOAWAY
		}
		hook.ServeHTTP(w, r)
	}))
}

// Start runs both; when one ends, so does the other.
func (s *kept) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	context.AfterFunc(ctx, func() {
		s.leaving.Store(true)
		time.AfterFunc(parting, end)
	})
	ended := make(chan error, 2)
	go func() { ended <- s.keep(ctx) }()
	go func() { ended <- s.Server.Start(serving) }()
	first := <-ended
	cancel()
	return errors.Join(first, <-ended)
}

// Ready is nil once API servers can call: the certificate is valid, all targets have had its CA, and the server of this
// process answers to clients that trust that CA. It is a healthz.Checker.
//
// Every pod can ask for the readiness of a process, and the answer costs a TLS handshake. So all that ask at once get
// one answer, which is used for a second, whether it is an error or not.
func (k *Keeper) Ready(r *http.Request) error {
	return k.readiness.answer(r.Context(), k.options.Clock, k.look)
}

// look is Ready without its memory.
func (k *Keeper) look(ctx context.Context) error {
	m := k.serving.Load()
	err := k.answers(ctx, m)
	// A certificate that came into use meanwhile is for those who trust its own CA.
	if now := k.serving.Load(); err != nil && now != m {
		err = k.answers(ctx, now)
	}
	return err
}

// readiness is the last answer of Ready.
type readiness struct {
	flights singleflight.Group

	mu   sync.Mutex
	last error
	at   time.Time
}

// answer returns the last answer, or a new one after a second.
func (r *readiness) answer(ctx context.Context, watch clock.PassiveClock, look func(context.Context) error) error {
	if last, usable := r.usable(watch); usable {
		return last
	}
	next := r.flights.DoChan("", func() (any, error) {
		if last, usable := r.usable(watch); usable {
			return nil, last // it came meanwhile
		}
		err := look(context.WithoutCancel(ctx)) // who asked first may go, and others wait
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last, r.at = err, watch.Now()
		return nil, err
	})
	select {
	case <-ctx.Done():
		return fmt.Errorf("ask the webhook server: %w", ctx.Err())
	case result := <-next:
		return result.Err
	}
}

// usable returns the last answer, and whether it is not too old.
func (r *readiness) usable(watch clock.PassiveClock) (error, bool) { //nolint:revive // the error is the value
	r.mu.Lock()
	defer r.mu.Unlock()
	age := watch.Since(r.at)
	return r.last, age >= 0 && age < used
}

// answers returns why a client that trusts the CA of a certificate cannot call.
func (k *Keeper) answers(ctx context.Context, m *material) error {
	if m == nil {
		return errors.New("there is no certificate yet")
	}
	if !k.settled.Load() {
		return errors.New("the CA is not in all webhook configurations and CRDs yet")
	}
	if err := verify(m.chain, m.authorities, k.names[0], k.options.Clock.Now()); err != nil {
		return fmt.Errorf("the certificate is not valid: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(k.options.Port))
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: m.roots, ServerName: k.names[0], MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true, // a connection of before says nothing
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+HealthPath, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask the webhook server: %w", err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask the webhook server: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask the webhook server: %s", response.Status)
	}
	return nil
}
