// Package sidecarsets returns what is invalid in SidecarSets, which of them conflict, and what their users are warned
// of.
//
//	faults := sidecarsets.Validate(set)
//	faults := sidecarsets.Conflicts(set, others)
//	shared, found, err := sidecarsets.Overlap(a.Spec.Selector, b.Spec.Selector)
//
// Two sets conflict where a pod can exist that both select.
//
// The webhook of a kind rejects what the functions return, and the reconciler calls the same function for an object
// that was stored without the webhook, so that both agree.
//
// Laws:
//   - The functions are deterministic, change nothing, and accept every object that can be decoded.
//   - A fault names its field by the path in v1beta1. Its text is for users, its field and type are stable.
//   - Defaults do not change the faults.
//   - The overlap of selectors is exact: every selector selects the labels, and if there are none, no object is
//     selected. That is possible because the keys of a selector do not depend on each other: for each key finitely many
//     values are required or excluded, and infinitely many are not.
//   - The labels of an overlap are as few as possible, and do not depend on the order of the selectors.
//
// When not to use it: to find out whether one selector selects all that another one selects.
package sidecarsets
