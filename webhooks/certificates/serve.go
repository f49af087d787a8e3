package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
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
	k.started = server.StartedChecker()
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

// Ready is nil once API servers can call: the certificate is valid, all targets have had its CA, and the server of With
// listens. It is a healthz.Checker.
func (k *Keeper) Ready(r *http.Request) error {
	m := k.serving.Load()
	if m == nil {
		return errors.New("there is no certificate yet")
	}
	if k.settled.Load() == nil {
		return errors.New("the CA is not in all webhook configurations and CRDs yet")
	}
	if err := verify(m.chain, m.authorities, k.names[0], k.clock.Now()); err != nil {
		return fmt.Errorf("the certificate is not valid: %w", err)
	}
	if k.started == nil {
		return nil
	}
	return k.started(r)
}
