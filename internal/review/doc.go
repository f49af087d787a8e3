// Package review is what admission webhooks share: reading a request, and answering it.
//
// In use:
//
//	content, err := review.Decode(req.Object.Raw)
//	patch, err := review.Changes(content, before, after)
//	return review.Patched(patch)
//
// When not to use it: for a kind whose admission is defaults and rules. Package webhooks/kinds does all of this for a
// row.
//
// Laws:
//   - A patch changes what differs between two typed objects, and nothing else: unknown fields, and the notation of the
//     others, stay as the user sent them.
//   - A rejection has the code of the reference, and names every fault with its path.
package review
