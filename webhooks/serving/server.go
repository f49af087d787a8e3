package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog" //nolint:depguard // net/http takes no other logger
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// header is how long TLS and the header of a request may take, and most its size.
	header     = 5 * time.Second
	mostHeader = 64 << 10
	// idle connections are closed after it, as in controller-runtime.
	idle = 90 * time.Second
	// streams of one HTTP/2 connection; a client opens another one for more.
	streams = 100
	// ahead is what a connection buffers of bodies that are not read yet.
	ahead = 256 << 10
	// stop is how long running requests get to end.
	stop = time.Minute
)

// Server is a webhook.Server with limits. Paths are registered and measured as in controller-runtime.
type Server struct {
	webhook.Server

	mux     *http.ServeMux
	options Options
	gate    *gate
	started atomic.Bool
}

// New returns a server.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("webhook server: %w", err)
	}
	g, err := newGate(o)
	if err != nil {
		return nil, fmt.Errorf("webhook server: %w", err)
	}
	mux := http.NewServeMux()
	return &Server{Server: webhook.NewServer(webhook.Options{WebhookMux: mux}), mux: mux, options: o, gate: g}, nil
}

// Register serves a path within the limits.
func (s *Server) Register(path string, hook http.Handler) {
	s.Server.Register(path, s.gate.guard(path, hook))
}

// WebhookMux returns the paths. A path that is added there directly has no limit of its body.
func (s *Server) WebhookMux() *http.ServeMux { return s.mux }

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	config := &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	for _, change := range s.options.TLSOpts {
		change(config)
	}
	if config.GetCertificate == nil {
		return errors.New("webhook server: the TLS options must set GetCertificate")
	}
	if ca := s.options.Clients.CA; ca != nil {
		config.ClientCAs, config.ClientAuth = ca, tls.VerifyClientCertIfGiven // each path decides whether one is needed
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address())
	if err != nil {
		return fmt.Errorf("webhook server: %w", err)
	}
	log.FromContext(ctx).Info("Serving webhooks", "address", listener.Addr().String())
	return s.serve(ctx, tls.NewListener(s.gate.limit(ctx, listener), config))
}

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	l := s.options.Limits
	server := &http.Server{
		Handler:           s.mux,
		ReadHeaderTimeout: min(header, l.Read),
		ReadTimeout:       l.Read,
		WriteTimeout:      l.Answer,
		IdleTimeout:       idle,
		MaxHeaderBytes:    mostHeader,
		// every client can cause lines of it
		ErrorLog:    slog.NewLogLogger(logr.ToSlogHandler(log.FromContext(ctx).V(1)), slog.LevelInfo),
		ConnContext: withConnection,
		ConnState:   watch,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: ahead, MaxReceiveBufferPerStream: ahead,
		},
	}
	stopped := make(chan error, 1)
	end := context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stop)
		defer cancel()
		stopped <- server.Shutdown(late)
	})
	s.started.Store(true)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		end()
		return fmt.Errorf("webhook server: %w", err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop webhook server: %w", err)
	}
	return nil
}

func (s *Server) address() string {
	return net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port))
}

// StartedChecker returns a check that passes once the server listens.
func (s *Server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.started.Load() {
			return errors.New("the webhook server has not started yet")
		}
		return nil
	}
}
