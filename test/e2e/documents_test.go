//go:build e2e

package e2e

import (
	"testing"

	"github.com/kruisekit/kruisekit/test/document"
)

// typed are the arguments of each kubectl in a document's console blocks, in order.
func typed(t *testing.T, path string) [][]string {
	t.Helper()
	all, err := document.Commands(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
