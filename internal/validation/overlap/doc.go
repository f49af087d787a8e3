// Package overlap reports whether there can be an object that several label selectors select at once, and returns its
// labels.
//
//	shared, found, err := overlap.Labels(a.Spec.Selector, b.Spec.Selector)
//	if found {
//		fmt.Printf("both select pods with the labels %v", shared)
//	}
//
// [Labels] is for objects that can have any labels, as pods. [Namespace] is for namespaces, which always have their own
// name as a label.
//
// Laws:
//   - The result is exact: every selector selects the labels, and if there are none, no object is selected. That is
//     possible because the keys of a selector do not depend on each other: for each key finitely many values are
//     required or excluded, and infinitely many are not.
//   - The labels are as few as possible, and do not depend on the order of the selectors.
//   - A nil selector selects no object, an empty one all; for namespaces nil selects all.
//
// When not to use it: to find out whether one selector selects all that another one selects.
package overlap
