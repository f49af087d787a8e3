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
	options.Scheme, options.Logger = g.Scheme, m.Log
	options.Metrics = server.Options{BindAddress: "0"}
	options.HealthProbeBindAddress = "0"
	config := rest.CopyConfig(g.Config)
	config.UserAgent = m.Agent
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	if err := controllers.AddToManager(ctx, mgr, controllers.Options{CloneSet: m.CloneSet}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() error {
		cancel()
		if err := <-ended; err != nil {
			return fmt.Errorf("run manager: %w", err)
		}
		return nil
	}, nil
}
