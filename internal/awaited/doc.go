// Package awaited adds parts to a manager when the API server serves their kinds.
//
//	missing, err := awaited.Missing(mapper, part)
//	...
//	waiting, err := awaited.For(ctx, mgr, parts, awaited.Options{}) // those with missing kinds
//	err = mgr.Add(waiting)
//	...
//	err = waiting.Check(nil) // for readiness
//
// A look costs one request for each version of a group whose kinds are missing. The pause between looks grows from a
// second to a minute, and is a second again after a look that found a kind. A controller that joins late runs only on
// the leader, and its indexes cover the objects that the cache already has.
//
// A part that cannot be added ends the manager, as it does at the start: a half of a controller must not run.
package awaited
