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
	// headerTimeout is how long a handshake and a header may take.
	headerTimeout = 5 * time.Second
	maxHeader     = 16 << 10
	// idleTimeout is that of controller-runtime.
	idleTimeout = 90 * time.Second
	// streams of one HTTP/2 connection; a client opens another one for more.
	streams = 100
	// receiveBuffer bounds what a connection buffers of bodies that no handler reads yet.
	receiveBuffer = 256 << 10
	// drain is how long running requests may take to end.
	drain = time.Minute
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
	m, err := newRequestMetrics(o.Registerer, o.Limits.Memory)
	if err != nil {
		return nil, fmt.Errorf("webhook server: %w", err)
	}
	g := &gate{options: o, memory: newMemory(o.Limits.Memory, m.memory), metrics: m}
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
	if ca := s.options.ClientCA; ca != nil {
		config.ClientCAs, config.ClientAuth = ca, tls.VerifyClientCertIfGiven // each path decides whether one is needed
	}
	address := net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("webhook server: %w", err)
	}
	l := s.options.Limits
	bounded, err := Bound(listener, Bounds{
		Name: "webhook", Connections: l.Connections, PerAddress: l.PerAddress, Registerer: s.options.Registerer,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("webhook server: %w", err), listener.Close())
	}
	log.FromContext(ctx).Info("Serving webhooks", "address", listener.Addr().String())
	return s.serve(ctx, tls.NewListener(bounded, config))
}

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	l := s.options.Limits
	server := &http.Server{
		Handler:           s.mux,
		ReadHeaderTimeout: min(headerTimeout, l.Read),
		ReadTimeout:       l.Read,
		WriteTimeout:      l.Answer,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// Every client can cause its lines.
		ErrorLog:    slog.NewLogLogger(logr.ToSlogHandler(log.FromContext(ctx).V(1)), slog.LevelInfo),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          streams,
			MaxReceiveBufferPerConnection: receiveBuffer, MaxReceiveBufferPerStream: receiveBuffer,
		},
	}
	stopped := make(chan error, 1)
	end := context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
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

// StartedChecker returns a check that passes once the server listens.
func (s *Server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.started.Load() {
			return errors.New("the webhook server has not started yet")
		}
		return nil
	}
}
