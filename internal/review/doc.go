// Package review is what admission webhooks share: reading a request, and answering it.
//
// In use:
//
//	version, err := review.VersionOf(req, "toasters")
//	content, err := review.Decode(req.Object.Raw)
//	patch, err := review.Changes(content, before, after)
//	return review.Patched(patch)
//
// A webhook that only validates decodes both versions as v1beta1, and rejects new faults alone:
//
//	now, err := review.ReadHub(version, req.Object.Raw, &v1beta1.Toaster{}, &v1alpha1.Toaster{})
//	before, err := review.ReadHub(version, req.OldObject.Raw, &v1beta1.Toaster{}, &v1alpha1.Toaster{})
//	added, borne := review.Added(validation.Toaster(now), validation.Toaster(before))
//	return review.Judged(kind, req.Name, added, borne)
//
// Laws:
//   - A patch changes what differs between two typed objects, and nothing else: unknown fields, and the notation of the others, stay as
//     the user sent them.
//   - A rejection has the code of the reference, and names every fault with its path.
package review
