// Package write holds the writes of a plan as values: what to create, patch or delete, and with which body.
//
// A plan returns writes; the caller sends them with whatever client it has. The packages driver/clientgo and
// driver/runtimeclient send them with the two common clients.
//
//	for _, w := range writes {
//		data, err := w.Data()
//		...
//		_, err = pods.Patch(ctx, w.Object.GetName(), w.Type, data, metav1.PatchOptions{}, w.Subresources()...)
//		if write.IsOutdated(err) {
//			// The object is not what the plan looked at any more: observe, and plan again.
//		}
//	}
//
// The errors of API requests have three classes:
//
//	class        errors                                  what follows
//	IsOutdated   409, 404, a failed test of a patch      observe again, no failure
//	IsRefused    4xx but for those below                 this write fails, writes to other objects continue
//	IsFinal      400, 403, 413, 422, too large for etcd  refused, and again until a user changes an object
//	none         5xx, 401, 408, 429, no answer           the write may have been made, and others fail too
//
// An outdated write and a final one are refused, too.
//
// Most writes are JSON patches, which test what they were decided upon. Such a patch never overwrites what another
// writer did meanwhile, and does not fail for unrelated changes of the object.
//
// When not to use it: for writes outside of a plan, as those of a migration.
package write
