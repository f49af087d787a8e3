// Package process puts the daemon of a node together: the container runtimes, the parts that work with them, one way to
// the API server for all, and the endpoints by which a cluster sees how it is.
package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/daemon"
	"github.com/kruisekit/kruisekit/examples/kruise-daemon/options"
	"github.com/kruisekit/kruisekit/examples/reference/patience"
	"github.com/kruisekit/kruisekit/examples/reference/readers"
)

const (
	// UserAgent is what the API server logs, and whose fields it says they are.
	UserAgent = "kruise-daemon"
	// drain is what parts get to end. It is less than the pod gets.
	drain = 10 * time.Second
)

// Run runs the daemon until its context ends. It fails when there is no container runtime in time.
func Run(ctx context.Context, rc *rest.Config, o options.Options) error {
	runtimes, err := detect(ctx, o.Runtime)
	if err != nil {
		return err
	}
	registered := &registrations{Registerer: metrics.Registry}
	defer registered.end()
	p := process{Options: o, node: daemon.Node{Name: o.NodeName, Runtimes: runtimes}, metrics: registered}
	mgr, err := p.manager(ctx, rc)
	if err == nil {
		err = mgr.Start(ctx)
	}
	return errors.Join(err, runtimes.Close())
}

// process is all that a daemon is made of.
type process struct {
	options.Options
	node    daemon.Node
	metrics prometheus.Registerer
}

// manager is ready to start, with the same context.
func (p process) manager(ctx context.Context, rc *rest.Config) (ctrl.Manager, error) {
	parts, err := p.parts(ctx)
	if err != nil {
		return nil, err
	}
	mo, err := p.managerOptions(parts)
	if err != nil {
		return nil, err
	}
	mo.NewCache = patience.Until(ctx.Done(), mo.NewCache)
	if err := p.Release.Register("kruise_daemon_build_info", p.metrics); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(client(rc, p.Options), mo)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	log.FromContext(ctx).Info("Options", "node", p.node.Name, "featureGates", p.Gates.String())
	if err := daemon.AddToManager(ctx, mgr, p.node, parts); err != nil {
		return nil, err
	}
	if err := mgr.Add(lean{mgr.GetCache()}); err != nil {
		return nil, fmt.Errorf("add what gives memory back: %w", err)
	}
	checks, err := daemon.Checks(ctx, mgr, p.node, parts)
	if err != nil {
		return nil, err
	}
	for path, handler := range endpoints(logged(ctx, checks)) {
		if err := mgr.AddMetricsServerExtraHandler(path, handler); err != nil {
			return nil, fmt.Errorf("add health check: %w", err)
		}
	}
	return mgr, nil
}

func (p process) managerOptions(parts daemon.Options) (ctrl.Options, error) {
	mo, err := daemon.ManagerOptions(p.node.Name, parts)
	if err != nil {
		return mo, err
	}
	mo.Metrics = metricsserver.Options{BindAddress: p.Address}
	if p.SecureMetrics {
		mo.Metrics.SecureServing, mo.Metrics.FilterProvider = true, readers.Filter(readyPath, livePath)
	}
	mo.HealthProbeBindAddress = "0" // it is beside the metrics
	mo.PprofBindAddress = p.PprofAddress
	mo.GracefulShutdownTimeout = ptr.To(drain)
	return mo, nil
}

// client is how the process appears to the API server. All clients of the process share the limit.
func client(rc *rest.Config, o options.Options) *rest.Config {
	rc = rest.CopyConfig(rc)
	rc.UserAgent = UserAgent
	if o.Release.Version != "" {
		rc.UserAgent = o.Release.UserAgent()
	}
	rc.QPS, rc.Burst, rc.RateLimiter = -1, 0, nil
	if o.QPS > 0 {
		rc.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(o.QPS), o.Burst)
	}
	return rc
}
