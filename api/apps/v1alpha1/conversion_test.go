package v1alpha1_test

import "sigs.k8s.io/randfill"

// pick is one of the values at random.
func pick[T any](c randfill.Continue, values ...T) T {
	return values[c.Intn(len(values))]
}
