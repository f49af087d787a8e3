package kruisekit_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// doc.go links every package that an embedder can import, each once.
func TestMapNamesPackages(t *testing.T) {
	var want []string
	for _, path := range importable(t) {
		if !strings.HasPrefix(path, "examples/") {
			want = append(want, path)
		}
	}
	var got []string
	link := regexp.MustCompile(`\[github\.com/kruisekit/kruisekit/([^\]]+)\]`)
	for _, m := range link.FindAllStringSubmatch(read(t, "doc.go"), -1) {
		path := m[1]
		if strings.HasPrefix(path, "examples/") || strings.HasPrefix(path, "test/") {
			if files, err := filepath.Glob(filepath.Join(filepath.FromSlash(path), "*.go")); err != nil || len(files) == 0 {
				t.Errorf("%s is no package, %v", path, err)
			}
			continue
		}
		got = append(got, path)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("doc.go links other packages than there are (-there +linked):\n%s", diff)
	}
}

// importable are the paths of the packages that are neither internal, nor tests, nor tools, sorted.
func importable(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || path == "." {
			return err
		}
		name := entry.Name()
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "test") || name == "internal" || name == "testdata" ||
			name == "hack" || name == "bin" {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil { // another module
			return fs.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if slices.ContainsFunc(files, func(f string) bool { return !strings.HasSuffix(f, "_test.go") }) {
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}
