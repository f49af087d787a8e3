// Package native rolls out StatefulSets, DaemonSets and Deployments of apps/v1 in place. One annotation asks for that;
// no kind, no webhook and no daemon is needed in the cluster.
//
//	metadata:
//	  annotations:
//	    kruisekit.dev/rollout: '{"maxUnavailable":"25%"}' # see native.Rollout in package workload/native
//	spec:
//	  updateStrategy: {type: OnDelete} # or, for a StatefulSet, RollingUpdate with partition: 2147483647
//
//	r, err := native.New(mgr.GetClient(), native.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// Package workload/native decides; this package reads and writes. The built-in controllers keep creating pods, storing
// revisions and counting. The annotation kruisekit.dev/rollout-status reports the progress, see Progress. It is written
// when a number in it changes.
//
// A set whose annotation is removed is a plain set again: updates under way end, and the status annotation goes. The
// same holds for a set whose strategy is changed to RollingUpdate: the built-in controller goes on. That controller
// evicts a pod in the middle of an update in place once more; pause the rollout before the change of the strategy, and
// wait for inProgress to be 0.
//
// Where the template has the readiness gate InPlaceUpdateReady, pods leave traffic before their containers restart, and
// new pods become ready once this reconciler has opened the gate, with or without the annotation. Remove the gate from
// the template before the reconciler.
//
// With Options.Deployments, Deployments are rolled out as well. The write that changes the template must pause the
// Deployment and set the annotation native.HoldKey to a value that it has not had before, as the policy in
// config/native/hold does; or the user keeps the Deployment paused. Then the pods are updated in place, their
// ReplicaSet gets the template, and the hold ends. The built-in controller makes all other rollouts: that of a change
// that nothing has held, or that is not possible in place.
//
// Two installations act on different sets: a set names its installation as the class in the annotation, and the options
// of the reconciler have the same class. The replicas of one installation elect a leader.
//
// When not to use it: where the operator that owns the sets can call package workload/native itself.
package native
