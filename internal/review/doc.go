// Package review is what admission webhooks share: reading a request, and answering it.
//
// In use:
//
//	version, err := review.VersionOf(req, "toasters")
//	content, err := review.Decode(req.Object.Raw)
//	patch, err := review.Changes(content, before, after)
//	return review.Patched(patch)
//
// Laws:
//   - A patch changes what differs between two typed objects, and nothing else: fields that this program does not know, and
//     the notation of the others, stay as the user sent them.
//   - A refusal has the code that clients of the reference know, and names every fault with its path.
package review
