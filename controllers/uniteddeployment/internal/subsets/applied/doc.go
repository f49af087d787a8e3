// Package applied writes whole objects by server-side apply, for reconcilers that decide some fields of an object and
// leave the others to other writers.
//
//	w := applied.Writer{Client: c, Live: mgr.GetAPIReader(), Manager: "kruisekit-uniteddeployment"}
//	...
//	next, wait := last.Next(applied.Attempt{UID: stored.GetUID(), Content: hash, Lacks: paths, Now: now})
//	if next == nil { ... }                   // nothing to write, or not before wait
//	answer, err := w.Apply(ctx, rendered)    // takes the fields over from other managers
//
// Laws:
//   - Apply writes the rendered fields and no others.
//   - An object that API servers accept and cannot apply is put: its rendered fields of the spec are replaced. The next
//     apply owns them.
//   - Inherit makes the fields that another program wrote on behalf of the same owner those of the manager, once. The
//     next apply removes the ones that are no longer rendered.
//   - A content that was written is written again only when another writer has changed the object since, and then after
//     growing pauses of up to Longest.
//
// When not to use it: where a pass knows the fields that change. A patch that tests what it was decided upon is
// cheaper.
package applied
