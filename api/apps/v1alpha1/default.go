package v1alpha1

// setDefault sets *p to a pointer to v if *p is nil.
func setDefault[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}
