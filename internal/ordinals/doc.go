// Package ordinals computes which ordinals the pods of a StatefulSet have: from a start, for a number of replicas,
// around reserved ordinals.
//
//	reserved, err := ordinals.Parse(set.Spec.ReserveOrdinals) // such as 1 and "3-5"
//	if err != nil {
//		return err
//	}
//	wanted := ordinals.Window{Start: 0, Replicas: set.Spec.Replicas, Reserved: reserved}
//	for ordinal := range wanted.All() {
//		name := ordinals.Name(set.Name, ordinal)
//		...
//	}
//
// Laws:
//   - A window has as many ordinals as Replicas, none of them reserved, and no free ordinal between its first and its
//     last one is left out. The exception is the end of the ordinals, at 2,147,483,647.
//   - Memory and time depend on the number of reserved items, never on the length of a range: 0-2000000000 is one
//     interval.
//   - The order of the items does not matter, nor do duplicates and overlaps.
package ordinals
