package document

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/examples/reference/gates"
)

const (
	operations = "docs/operations.md"
	root       = "../../"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(root + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section is the text below a heading of the page about operations.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, operations), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %s", operations, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// Each gate in the table exists, and has the default that the table names.
func TestOperationsNamesGates(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) ").FindAllStringSubmatch(section(t, "Feature gates"), -1)
	if len(rows) == 0 {
		t.Fatal("no gates")
	}
	for _, row := range rows {
		name, on := row[1], row[2] == "on"
		if _, err := gates.Parse(name + "=true"); err != nil {
			t.Error(err)
		} else if gates.Default().On(gates.Gate(name)) != on {
			t.Errorf("%s is %s by default in the table, and not in the code", name, row[2])
		}
	}
}

// Each flag that the page names is a string in the code. hack/metrics does the same for metrics.
func TestOperationsNamesFlags(t *testing.T) {
	files, err := filepath.Glob(root + "examples/*/options/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, f := range files {
		code.WriteString(read(t, strings.TrimPrefix(filepath.ToSlash(f), root)))
	}
	found := regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(section(t, "Flags"), -1)
	if len(found) == 0 {
		t.Fatal("no flags")
	}
	for _, m := range found {
		key := strings.TrimSuffix(m[1], "-workers")
		if !strings.Contains(code.String(), `"`+key+`"`) && m[1] != "help" {
			t.Errorf("%s names %s, which is not in the code", operations, m[1])
		}
	}
}
