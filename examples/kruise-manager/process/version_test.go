package process

import "testing"

func TestAtLeast(t *testing.T) {
	for text, want := range map[string]bool{
		"v1.32.0": true, "v1.32+gke.1": true, "v1.33.4-eks-1": true, "v2.0.0": true, "1.32": true,
		"v1.31.9": false, "v1.9.0": false, "v0.99.0": false,
		"garbage": false, "": false, "v1": false, "v1.": false, "v.32": false, "v99999999999999999999.1": false,
	} {
		if got := atLeast(text, 32); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
