package controllers_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// The README shows this. It is compiled, not run: it wants a cluster.
func Example() { //nolint:testableexamples // it wants a cluster
	run := func(ctx context.Context) error {
		options, err := controllers.ManagerOptions() // the scheme, and a frugal cache
		if err != nil {
			return err
		}
		mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), options)
		if err != nil {
			return err
		}
		r, err := cloneset.New(mgr.GetClient(), cloneset.Options{PartitionRollback: true})
		if err != nil {
			return err
		}
		if err := r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3}); err != nil {
			return err
		}
		// Your own controllers go here.
		return mgr.Start(ctx)
	}
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Println(err)
	}
}

// docs/coexistence.md shows this.
func Example_selector() { //nolint:testableexamples // it wants a cluster
	run := func(ctx context.Context, mgr ctrl.Manager) error {
		selector, err := labels.Parse("teams.example.com/name=search")
		if err != nil {
			return err
		}
		return controllers.AddToManager(ctx, mgr, controllers.Options{
			Names: []string{"cloneset", "sidecarset"}, Selector: selector, // as in webhooks.Options
		})
	}
	_ = run
}
