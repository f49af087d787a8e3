package v1alpha1

// setDefault points p at v unless the user pointed it at something else.
func setDefault[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}
