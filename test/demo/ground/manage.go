package ground

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/controllers/native"
)

// Management says how the reconcilers run.
type Management struct {
	// Agent is who the API server says they are.
	Agent string
	// Log is what they log to.
	Log logr.Logger
	// CloneSet are the options of that reconciler.
	CloneSet cloneset.Options
}

// Manage runs the reconcilers of the library in this process until the returned function is called, which gives their
// error. There are no webhooks: none of what is shown needs one.
func (g *Ground) Manage(ctx context.Context, m Management) (stop func() error, err error) {
	options, err := controllers.ManagerOptions()
	if err != nil {
		return nil, err
	}
	mgr, err := g.manager(m.Agent, m.Log, options)
	if err != nil {
		return nil, err
	}
	if err := controllers.AddToManager(ctx, mgr, controllers.Options{
		Names: []string{"*", "native"}, CloneSet: m.CloneSet, Native: native.Options{Deployments: true},
	}); err != nil {
		return nil, err
	}
	return start(ctx, mgr).stop, nil
}

// manager returns a manager that the API server knows as agent.
func (g *Ground) manager(agent string, log logr.Logger, options ctrl.Options) (ctrl.Manager, error) {
	options.Scheme, options.Logger = g.Scheme, log
	options.Metrics = server.Options{BindAddress: "0"}
	options.HealthProbeBindAddress = "0"
	config := rest.CopyConfig(g.Config)
	config.UserAgent = agent
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	return mgr, nil
}

// running is a manager that runs.
type running struct {
	cancel context.CancelFunc
	// done is closed when the manager has ended, with err.
	done chan struct{}
	err  error
}

// start runs a manager until the context ends or the manager is stopped.
func start(ctx context.Context, mgr ctrl.Manager) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = mgr.Start(ctx)
	}()
	return r
}

func (r *running) stop() error {
	r.cancel()
	<-r.done
	if r.err != nil {
		return fmt.Errorf("run manager: %w", r.err)
	}
	return nil
}
