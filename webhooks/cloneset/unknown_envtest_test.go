//go:build envtest

package cloneset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
)

// testUnknown has the API server find what is misspelt in a template, and tell it once.
func testUnknown(t *testing.T, g *reviewtest.Ground) {
	const typo = `{"template":{"spec":{"containers":[{"name":"main","image":"app:1","comand":["a"]}]}}}`
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		got, err := g.Warnings(t, newSet(t, version, "default", typo))
		if diff := cmp.Diff([]string{`unknown field "spec.template.spec.containers[0].comand"`}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", version, err, diff)
		}
		if got, err = g.Warnings(t, newSet(t, version, "default", `{}`)); len(got) > 0 || err != nil {
			t.Errorf("%s: nothing is misspelt: %q, %v", version, got, err)
		}
	}
}
