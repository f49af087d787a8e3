package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryProgramOfASubsetIsInTheCatalogue(t *testing.T) {
	for _, s := range Subsets() {
		names, err := Programs(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if _, ok := catalogue()[name]; !ok {
				t.Errorf("subset %s: nothing says how to build %s", s, name)
			}
		}
	}
	if _, err := Programs("nonsense"); err == nil {
		t.Error("an unknown subset has programs")
	}
}

func TestPinnedVersionsAreFound(t *testing.T) {
	cache, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range catalogue() {
		version, err := cache.version(p)
		if err != nil || (p.pinned != "" && !strings.HasPrefix(version, "v")) {
			t.Errorf("%s: version %q of %s, %v", name, version, p.pinned, err)
		}
	}
}

func TestKeyCoversTheModule(t *testing.T) {
	cache := Cache{Dir: t.TempDir(), Source: t.TempDir()}
	gomod := filepath.Join(cache.Source, "crane", "go.mod")
	if err := os.MkdirAll(filepath.Dir(gomod), 0o755); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, content := range []string{"module a", "module b"} {
		if err := os.WriteFile(gomod, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		path, err := cache.target("crane")
		if err != nil {
			t.Fatal(err)
		}
		keys[path] = true
	}
	if len(keys) != 2 {
		t.Errorf("another go.mod has the same place in the cache: %v", keys)
	}
	if _, err := cache.Path("crane"); !errors.Is(err, ErrMissing) {
		t.Errorf("path of what is not built: %v, want %v", err, ErrMissing)
	}
}
