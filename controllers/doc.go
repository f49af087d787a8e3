// Package controllers adds the reconcilers of this library to a controller-runtime manager: all of them, or a choice.
//
//	o, err := controllers.ManagerOptions() // a scheme and a frugal cache; add addresses and leader election
//	...
//	mgr, err := ctrl.NewManager(config, o)
//	...
//	err = controllers.AddToManager(ctx, mgr, controllers.Options{Names: []string{"*", "-sidecarset"}})
//
// Do not use it for one or two of them in a manager of your own: their packages below this one have New and
// SetupWithManager, and are all that you then compile.
//
// A reconciler whose kind is not installed is left out, with a line in the log, and is added when the kind is
// installed. The manager looks again after a second, and less and less often up to once a minute. A kind that a
// reconciler watches besides its own, and can do without, is waited for in the first 15 seconds; one that is installed
// later is watched after the next start.
package controllers
