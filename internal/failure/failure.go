// Package failure takes joined errors apart, and shortens what is reported of one. Which errors of the API server are
// outdated, refused or final is classified in package write.
package failure

// Parts returns the errors that were joined into one, at any depth of joining; nil has none.
func Parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var parts []error
	for _, part := range joined.Unwrap() {
		parts = append(parts, Parts(part)...)
	}
	return parts
}
