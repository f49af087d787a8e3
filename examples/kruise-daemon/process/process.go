// Package process puts the daemon of a node together: the container runtimes, the parts that work with them, one way to the
// API server for all, and the endpoints by which a cluster sees how it is.
package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/daemon"
	"github.com/kruisekit/kruisekit/examples/kruise-daemon/options"
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
	mgr, err := New(ctx, rc, daemon.Node{Name: o.NodeName, Runtimes: runtimes}, o)
	if err == nil {
		err = mgr.Start(ctx)
	}
	return errors.Join(err, runtimes.Close())
}

// New makes a manager that is ready to start. Its context is that of the setup alone.
func New(ctx context.Context, rc *rest.Config, n daemon.Node, o options.Options) (ctrl.Manager, error) {
	do := parts(o)
	mo, err := managerOptions(n.Name, o, do)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(client(rc, o), mo)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	log.FromContext(ctx).Info("Options", "node", n.Name, "featureGates", o.Gates.String())
	if err := daemon.AddToManager(ctx, mgr, n, do); err != nil {
		return nil, err
	}
	checks, err := daemon.Checks(ctx, mgr, n, do)
	if err != nil {
		return nil, err
	}
	for path, handler := range endpoints(checks) {
		if err := mgr.AddMetricsServerExtraHandler(path, handler); err != nil {
			return nil, fmt.Errorf("add health check: %w", err)
		}
	}
	return mgr, nil
}

// client is how the process appears to the API server. All clients of the process share the limit.
func client(rc *rest.Config, o options.Options) *rest.Config {
	rc = rest.CopyConfig(rc)
	rc.UserAgent = UserAgent
	rc.QPS, rc.Burst, rc.RateLimiter = -1, 0, nil
	if o.QPS > 0 {
		rc.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(o.QPS), o.Burst)
	}
	return rc
}

func managerOptions(node string, o options.Options, do daemon.Options) (ctrl.Options, error) {
	mo, err := daemon.ManagerOptions(node, do)
	if err != nil {
		return mo, err
	}
	mo.Metrics = metricsserver.Options{BindAddress: o.Address}
	mo.HealthProbeBindAddress = "0" // it is beside the metrics
	mo.PprofBindAddress = o.PprofAddress
	mo.GracefulShutdownTimeout = ptr.To(drain)
	return mo, nil
}
