//go:build e2e

package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// typed are the arguments of each kubectl in a document's console blocks, in order. Single quotes hold a word together.
func typed(t *testing.T, path string) [][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile(`'[^']*'|\S+`)
	var all [][]string
	for line := range strings.Lines(string(text)) {
		after, found := strings.CutPrefix(line, "$ kubectl ")
		if !found {
			continue
		}
		words := word.FindAllString(after, -1)
		for i := range words {
			words[i] = strings.Trim(words[i], "'")
			if strings.HasPrefix(words[i], "config/") {
				words[i] = "../../" + words[i]
			}
		}
		all = append(all, words)
	}
	if len(all) == 0 {
		t.Fatalf("%s tells nothing to type", path)
	}
	return all
}
