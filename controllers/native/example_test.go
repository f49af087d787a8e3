package native_test

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/controllers/native"
)

// docs/native.md shows this. It is compiled, not run: it needs a cluster.
func Example() { //nolint:testableexamples // it needs a cluster
	run := func(ctx context.Context) error {
		mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
			LeaderElection: true, LeaderElectionID: "native-rollouts", LeaderElectionNamespace: "kruise-system",
		})
		if err != nil {
			return err
		}
		r, err := native.New(mgr.GetClient(), native.Options{})
		if err != nil {
			return err
		}
		if err := r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3}); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Println(err)
	}
}
