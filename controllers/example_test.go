package controllers_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
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
	run := func(ctx context.Context, config *rest.Config) error {
		options, err := controllers.ManagerOptions()
		if err != nil {
			return err
		}
		options.Cache.ByObject[&v1beta1.CloneSet{}] = cache.ByObject{
			Label: labels.SelectorFromSet(labels.Set{"teams.example.com/name": "search"}),
		}
		mgr, err := ctrl.NewManager(config, options)
		if err != nil {
			return err
		}
		return controllers.AddToManager(ctx, mgr, controllers.Options{Names: []string{"cloneset"}})
	}
	_ = run
}
