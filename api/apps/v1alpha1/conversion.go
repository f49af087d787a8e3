package v1alpha1

// each converts the items of a list; nil stays nil.
func each[A, B any](from []A, convert func(A) B) []B {
	if from == nil {
		return nil
	}
	to := make([]B, len(from))
	for i := range from {
		to[i] = convert(from[i])
	}
	return to
}

// eachValue converts the items of the lists in a map; nil stays nil.
func eachValue[A, B any](from map[string][]A, convert func(A) B) map[string][]B {
	if from == nil {
		return nil
	}
	to := make(map[string][]B, len(from))
	for key, list := range from {
		to[key] = each(list, convert)
	}
	return to
}
