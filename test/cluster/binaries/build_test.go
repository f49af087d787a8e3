package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The build of a program that compiles in no time: the whole way from its source to its place.
func TestBuildPrograms(t *testing.T) {
	cache, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	cache.Dir = t.TempDir()
	var log strings.Builder
	if err := cache.BuildPrograms(t.Context(), []string{"pause"}, &log); err != nil {
		t.Fatal(err)
	}
	path, err := cache.Path("pause")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(cache.Dir, "bin", "unfinished*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if want := "building pause: up to program 1 of 1"; !strings.HasPrefix(log.String(), want) {
		t.Errorf("the log is %q, want the prefix %q", log.String(), want)
	}
}
