// Package applied makes the writes of whole objects by server-side apply, for reconcilers that decide some fields of an
// object and leave the others to other writers.
//
//	next, wait := last.Next(applied.Attempt{UID: stored.GetUID(), Content: hash, Lacks: paths, Now: now})
//	if next == nil { ... }                       // nothing to write, or not before wait
//	a := &applied.Apply{Manager: "kruisekit-uniteddeployment", Rendered: rendered}
//	for w := a.Begin(); w != nil && err == nil { // send w
//		w, err = a.Answer(answer, err)
//	}
//
// Laws:
//   - Apply writes the rendered fields and no others.
//   - An object that API servers accept and cannot apply is patched: its rendered fields of the spec are replaced. The
//     next apply owns them.
//   - Inherit makes the fields that another program wrote on behalf of the same owner those of the manager, once. The
//     next apply removes the ones that are no longer rendered.
//   - A content that was written is written again only when another writer has changed the object since, and then after
//     growing pauses of up to Longest.
//
// When not to use it: where a pass knows the fields that change. A patch that tests what it was decided upon is
// cheaper.
package applied
