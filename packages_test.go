package kruisekit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The packages that doc.go lists are those of the table in README.md, and each of them is there.
func TestReadmeNamesPackages(t *testing.T) {
	inMap, inTable := packagesOfMap(t), packagesOfTable(t)
	if diff := cmp.Diff(inMap, inTable); diff != "" {
		t.Errorf("README.md has other packages than doc.go (-doc.go +README.md):\n%s", diff)
	}
	for _, path := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(inMap, inTable)))) {
		if files, err := filepath.Glob(filepath.Join(filepath.FromSlash(path), "*.go")); err != nil || len(files) == 0 {
			t.Errorf("%s is no package, %v", path, err)
		}
	}
}

// packagesOfMap are the paths that doc.go links, sorted, as often as it does.
func packagesOfMap(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, link := range regexp.MustCompile(`\[github\.com/kruisekit/kruisekit/([^\]]+)\]`).FindAllStringSubmatch(string(text), -1) {
		paths = append(paths, link[1])
	}
	slices.Sort(paths)
	return paths
}

// packagesOfTable are the paths in the first column of README.md's table of packages, sorted, as often as they are there.
func packagesOfTable(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Packages\n")
	if !found {
		t.Fatal("README.md has no packages")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var paths []string
	for line := range strings.Lines(section) {
		column, isRow := strings.CutPrefix(line, "| `")
		if !isRow {
			continue
		}
		column, _, _ = strings.Cut(column, " |")
		for name := range strings.SplitSeq(column, ",") {
			paths = append(paths, strings.Trim(name, " `"))
		}
	}
	slices.Sort(paths)
	return paths
}
