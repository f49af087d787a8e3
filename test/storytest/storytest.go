// Package storytest compares the stories of tests with golden files, which the flag -update rewrites.
package storytest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden stories")

// Compare reports an error where a story differs from the golden file of its name in testdata. In the name of the file,
// dashes replace spaces.
func Compare(t testing.TB, name, story string) {
	t.Helper()
	path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(story), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: -update writes it", err)
	}
	if diff := cmp.Diff(string(want), story); diff != "" {
		t.Errorf("the story %q is another one (-want +got); -update rewrites it:\n%s", name, diff)
	}
}
