// Package podbench is the harness for tests of reconcilers against an API server: a namespace of the control plane that
// all packages of a level share, managers that run in it, a record of their requests, and faults. There is no kubelet:
// a test writes the status of its pods, or runs test/standin beside the reconciler.
//
//	func TestReconciler(t *testing.T) {
//		t.Parallel()
//		b := podbench.New(t, cluster.Options{CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_clonesets.yaml"}})
//		b.Beside(func(mgr ctrl.Manager) error {
//			return (&standin.Kubelet{Client: mgr.GetClient(), Node: "n"}).SetupWithManager(mgr)
//		})
//		faults := b.Faults(0)
//		b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
//			r, err := cloneset.New(podbench.Writes(c, faults.Do), cloneset.Options{})
//			...
//			return r.SetupWithManager(b.Context(), mgr, controller.Options{})
//		})
//		b.Until(func() error { ... }) // something becomes so
//		b.Still()                     // nothing is left to do
//		requests := b.Asked()         // counted since the last call
//	}
//
// A test asks for no more than what it shows: [Bench.Until] for a state that comes, [Bench.Still] before a count of
// what a reconciler does, [Bench.Faults] where requests fail, [Bench.Run] again after its stop for a restart. No test
// sleeps.
//
// Kinds without a namespace need a label of the test, by which Bench.Cache selects them.
package podbench
