// Package failure takes joined errors apart, and marks those as terminal that only another spec can mend. Which errors
// of the API server are outdated, refused or final is classified in package write.
package failure

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Parts returns the errors that were joined into one, at any depth of joining; nil has none.
func Parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return []error{err}
	}
	var parts []error
	for _, part := range joined.Unwrap() {
		parts = append(parts, Parts(part)...)
	}
	return parts
}

// Terminal marks an error as terminal when only a change of the spec can mend each of its parts. The reconciler then
// does not retry.
func Terminal(err error, needsOtherSpec func(error) bool) error {
	parts := Parts(err)
	if len(parts) == 0 || slices.ContainsFunc(parts, func(part error) bool { return !needsOtherSpec(part) }) {
		return err
	}
	return reconcile.TerminalError(err)
}
