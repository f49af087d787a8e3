// Package watches turns the events of a watch into requests.
//
// Transitions hands a handler an object before and after an event. Decisive selects the updates of an untyped object
// that a pass looks at. Unfinished finds the jobs of a kind to which a change of another object matters:
//
//	jobs := watches.NewUnfinished(gvk(), ephemeral.Over, ephemeral.NewRule)
//	err := jobs.Index(ctx, mgr.GetFieldIndexer())
//	...
//	requests, err := jobs.Affected(ctx, mgr.GetCache(), pod.Namespace, func(rule *ephemeral.Rule) bool {
//		return rule.State(before) != rule.State(after)
//	})
//
// A kind with an index of its own asks Rules about the objects that it lists by that index.
//
// When not to use it: for the pods of a workload, whose changes package podwatch selects.
package watches
