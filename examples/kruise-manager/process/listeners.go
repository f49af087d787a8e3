package process

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/reference/readers"
	"github.com/kruisekit/kruisekit/webhooks/serving"
)

const (
	// perAddress is how many connections one client of the port of probes, or of that of metrics, may have.
	perAddress = 16
	// How long a client may take for a header and a request, for an answer, and between requests; and the size of a
	// header.
	headerTimeout, readTimeout = 5 * time.Second, 10 * time.Second
	writeTimeout, idleTimeout  = 30 * time.Second, 90 * time.Second
	maxHeader                  = 64 << 10
	// off is the address of a port that is not served.
	off = "0"
)

// newManager returns a manager that serves its probes and metrics on listeners that are bounded as that of the webhooks
// is: every pod of the cluster can connect. Controller-runtime would listen itself, without bounds.
func newManager(ctx context.Context, rc *rest.Config, mo ctrl.Options, o options.Options) (ctrl.Manager, error) {
	mo.HealthProbeBindAddress, mo.Metrics.BindAddress = off, off
	mgr, err := ctrl.NewManager(rc, mo)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	checked := newProbed(mgr)
	if err := addPort(ctx, mgr, port{"probes", o.ProbeAddress, checked.handler(), false}); err != nil {
		return nil, err
	}
	handler, err := metricsHandler(ctx, mgr, o.SecureMetrics)
	if err != nil {
		return nil, err
	}
	return checked, addPort(ctx, mgr, port{"metrics", o.MetricsAddress, handler, o.SecureMetrics})
}

// port is what is served at an address.
type port struct {
	name, address string
	handler       http.Handler
	secure        bool
}

// addPort adds a port to a manager, which serves it before it leads and before its caches are filled.
func addPort(ctx context.Context, mgr ctrl.Manager, of port) error {
	if of.address == off || of.address == "" {
		return nil
	}
	listener, err := listen(ctx, of)
	if err != nil {
		return fmt.Errorf("listen for %s: %w", of.name, err)
	}
	server := &manager.Server{Name: of.name, Listener: listener, ShutdownTimeout: ptr.To(drain), Server: &http.Server{
		Handler: of.handler, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
	}}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("add server of %s: %w", of.name, err)
	}
	return nil
}

func listen(ctx context.Context, of port) (net.Listener, error) {
	config := &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	if of.secure {
		// Readers do not verify it, as those of the components of Kubernetes.
		certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
		if err != nil {
			return nil, fmt.Errorf("make a certificate: %w", err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("read the certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", of.address)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the address
	}
	listener, err = serving.Bound(listener, serving.Bounds{
		Name: of.name, PerAddress: perAddress, Registerer: metrics.Registry,
	})
	if err != nil || !of.secure {
		return listener, err
	}
	return tls.NewListener(listener, config), nil
}

// metricsHandler serves /metrics as controller-runtime does.
func metricsHandler(ctx context.Context, mgr ctrl.Manager, secure bool) (http.Handler, error) {
	handler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	if secure {
		filter, err := readers.Filter()(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return nil, err
		}
		if handler, err = filter(log.FromContext(ctx), handler); err != nil {
			return nil, fmt.Errorf("filter readers of metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	return mux, nil
}

// probed is a manager that keeps its checks. They are added before it starts, and only read afterwards.
type probed struct {
	ctrl.Manager

	live, ready map[string]healthz.Checker
}

func newProbed(mgr ctrl.Manager) *probed {
	return &probed{Manager: mgr, live: map[string]healthz.Checker{}, ready: map[string]healthz.Checker{}}
}

// AddHealthzCheck adds a check of /healthz.
func (m *probed) AddHealthzCheck(name string, check healthz.Checker) error {
	m.live[name] = check
	return nil
}

// AddReadyzCheck adds a check of /readyz.
func (m *probed) AddReadyzCheck(name string, check healthz.Checker) error {
	m.ready[name] = check
	return nil
}

// handler answers probes as controller-runtime does: each check has a path below that of all.
func (m *probed) handler() http.Handler {
	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{"/healthz": m.live, "/readyz": m.ready} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: checks})
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}
	return mux
}
