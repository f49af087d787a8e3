// Package revision keeps the history of a workload's pod template in ControllerRevisions: it encodes a template,
// names it, finds it again among the stored ones, and says which stored ones can go.
//
// Everything is a value: the caller lists the ControllerRevisions and carries out what it is told.
//
//	data, err := revision.Encode(&set.Spec.Template)
//	...
//	r := revision.Resolve(revision.Input{
//		Owner: set.Name, Data: data, Have: stored,
//		Current: set.Status.CurrentRevision, Collisions: set.Status.CollisionCount,
//	})
//	switch r.Verdict {
//	case revision.Create: // create an object named r.Name with data and r.Number
//	case revision.Bump:   // set r.Update.Revision to r.Number
//	case revision.Use:    // nothing to write
//	}
//
// Two templates are the same revision when they mean the same pod. Stored bytes differ for reasons that are no
// change: another release of the type library encodes a zero value otherwise, or the API server filled in its
// defaults. To make a revision of such a difference would restart every pod of every workload when a controller
// is upgraded or takes over from another one; Same tells the real changes.
//
// Laws:
//   - The order of the stored revisions does not matter.
//   - A template that is stored is never created again, and the newest revision always is the wanted template.
//   - Resolving again after the verdict was carried out gives Use.
//   - A revision that a pod runs is never trimmed.
//
// When not to use it: for anything but pod templates; their meaning is what Same knows.
package revision
