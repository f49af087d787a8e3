// Package awaited adds parts to a manager when the API server serves their kinds.
//
//	missing, err := awaited.Missing(mapper, part)
//	...
//	var waiting awaited.Parts
//	err = waiting.AddTo(ctx, mgr, parts) // those with missing kinds
//	...
//	err = waiting.Check() // for readiness
//
// A look costs a request for each part that waits. The pause between looks grows from a second to a minute, and is a
// second again after a look that found a kind. A controller that joins late runs only on the leader, and its indexes
// cover the objects that the cache already has.
//
// A part that cannot be added ends the manager, as it does at the start: a half of a controller must not run.
package awaited
