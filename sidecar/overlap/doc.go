// Package overlap tells whether there is an object that several label selectors select at once, and shows its labels.
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
//   - It is exact. What it shows is selected by every selector, and where it finds nothing there is nothing. That is
//     possible because the keys of a selector do not depend on each other: for each there are finitely many values that
//     are asked for or ruled out, and more values than anybody can rule out.
//   - It shows no more labels than it must, and the same ones each time, in whatever order the selectors come.
//   - A selector of nothing (nil) selects no object, an empty one all; for namespaces nil is all, as where none is given.
//
// When not to use it: to find out whether one selector selects all that another does, which is another question.
package overlap
