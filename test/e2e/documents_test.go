//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
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

// shown expects a document to show what kubectl get has printed. The age, which comes last, differs.
func shown(t *testing.T, path, said string) {
	t.Helper()
	if err := isShown(path, said); err != nil {
		t.Error(err)
	}
}

func isShown(path, said string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	row := func(line string) string {
		words := strings.Fields(line)
		return strings.Join(words[:max(0, len(words)-1)], " ")
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		rows[row(line)] = true
	}
	for line := range strings.Lines(said) {
		if r := row(line); r == "" || !rows[r] {
			return fmt.Errorf("%s does not show %q", path, r)
		}
	}
	return nil
}
