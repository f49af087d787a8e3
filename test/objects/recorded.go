package objects

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// Recorded reads a list of objects that OpenKruise left in a cluster, from the recordings of test/compat. The test may
// run in any package of the module.
func Recorded(t testing.TB, file string, into any) {
	t.Helper()
	const recordings = "test/compat/testdata/recorded"
	root := "."
	for range 6 {
		if _, err := os.Stat(filepath.Join(root, recordings)); err == nil {
			break
		}
		root = filepath.Join(root, "..")
	}
	data, err := os.ReadFile(filepath.Join(root, recordings, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}
