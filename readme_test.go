package kruisekit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// frontPage is how many lines README.md may have.
const frontPage = 150

func TestReadmeIsAFrontPage(t *testing.T) {
	if n := strings.Count(read(t, "README.md"), "\n"); n > frontPage {
		t.Errorf("README.md has %d lines, want at most %d: what is longer belongs to docs/", n, frontPage)
	}
}

// documents are the paths of all pages for users.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "examples/*/README.md", "test/*/README.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			pages = append(pages, filepath.ToSlash(path))
		}
	}
	return pages
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The Go code in documents is that of examples which are compiled: each block names its own.
func TestDocumentsShowExamples(t *testing.T) {
	block := regexp.MustCompile("(?s)(<!-- This is (\\w+) in (\\S+)\\. -->\n)?```go\n(.*?)```")
	for _, path := range documents(t) {
		all := block.FindAllStringSubmatch(read(t, path), -1)
		if path == "README.md" && len(all) == 0 {
			t.Error("no Go code in README.md")
		}
		for _, one := range all {
			function, file, code := one[2], one[3], one[4]
			if function == "" {
				t.Errorf("%s shows code that does not name its example:\n%s", path, code)
				continue
			}
			if body := bodyOf(t, file, function); !strings.Contains(flush(body), flush(code)) {
				t.Errorf("%s shows other code than %s in %s:\n%s\nwhich is\n%s", path, function, file, code, body)
			}
		}
	}
}

// The output of commands in documents is that of tests, where a block names the file that a test compares.
func TestDocumentsShowOutput(t *testing.T) {
	block, shown := regexp.MustCompile("(?s)<!-- This is from (\\S+)\\. -->\n```text\n(.*?)```"), 0
	for _, path := range documents(t) {
		for _, one := range block.FindAllStringSubmatch(read(t, path), -1) {
			if shown++; !strings.Contains(read(t, one[1]), one[2]) {
				t.Errorf("%s shows other output than %s:\n%s", path, one[1], one[2])
			}
		}
	}
	if shown == 0 {
		t.Error("no document shows output of a test")
	}
}

// Each relative link of a document leads to a file, and to a heading of it where it names one. A link whose text is the
// name of a test leads to a file with that test.
func TestDocumentsLinkWhatExists(t *testing.T) {
	link := regexp.MustCompile(`\[([^\]\n]*)\]\(([^)\s]+)\)`)
	test := regexp.MustCompile(`^[tT]est[A-Z]\w*$`)
	fence := regexp.MustCompile("(?s)```.*?```")
	for _, path := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, path), ""), -1) {
			text, target := m[1], m[2]
			if strings.Contains(target, "://") {
				continue
			}
			file, heading, _ := strings.Cut(target, "#")
			to := path
			if file != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(path), file))
			}
			if _, err := os.Stat(filepath.FromSlash(to)); err != nil {
				t.Errorf("%s links %s: %v", path, target, err)
				continue
			}
			if heading != "" && !slices.Contains(headings(read(t, to)), heading) {
				t.Errorf("%s links %s, which has no such heading: %v", path, target, headings(read(t, to)))
			}
			if test.MatchString(text) && !strings.Contains(read(t, to), " "+text+"(") &&
				!strings.Contains(read(t, to), ") "+text+"(") {
				t.Errorf("%s names %s as evidence, and %s has no such test", path, text, to)
			}
		}
	}
}

// headings are the names by which the headings of a page can be linked.
func headings(page string) []string {
	var names []string
	for line := range strings.Lines(regexp.MustCompile("(?s)```.*?```").ReplaceAllString(page, "")) {
		text, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !is || !strings.HasPrefix(line, "#") {
			continue
		}
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// The table of kinds has all kinds of the CRDs, each with its page and with a sample, or with the manager as the writer
// of its objects. All have a reconciler in the list of the manager.
func TestReadmeNamesKinds(t *testing.T) {
	cell := regexp.MustCompile(
		`\| \[([A-Z]\w+)\]\(docs/kinds/(\w+)\.md\) \| (by the manager|\[sample\]\(config/samples/(\w+)\.yaml\)) `)
	states := map[string]string{}
	for _, m := range cell.FindAllStringSubmatch(read(t, "README.md"), -1) {
		kind := strings.ToLower(m[1])
		if m[2] != kind || m[4] != "" && m[4] != kind {
			t.Errorf("README.md links %s and %s for %s", m[2], m[3], m[1])
		}
		states[kind] = m[3]
	}
	crds, err := filepath.Glob("config/crd/bases/*_*.yaml")
	if err != nil || len(crds) != 18 {
		t.Fatalf("%d CRDs, want 18, %v", len(crds), err)
	}
	for _, path := range crds {
		m := regexp.MustCompile(`(?m)^    singular: (\w+)$`).FindStringSubmatch(read(t, filepath.ToSlash(path)))
		if m == nil {
			t.Fatalf("%s names no kind", path)
		}
		if !strings.Contains(read(t, "controllers/controllers.go"), `/controllers/`+m[1]+`"`) {
			t.Errorf("the manager has no reconciler of %s", m[1])
		}
		if states[m[1]] == "" {
			t.Errorf("README.md does not have %s", m[1])
		}
		delete(states, m[1])
	}
	if len(states) > 0 {
		t.Errorf("README.md names kinds that have no CRD: %v", states)
	}
}

// flush is code without its indentation: a document shows it at the left.
func flush(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "\t")
	}
	return strings.Join(lines, "\n")
}

// bodyOf is what a function does, as written there.
func bodyOf(t *testing.T, file, function string) string {
	t.Helper()
	source := read(t, file)
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, declaration := range parsed.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Name.Name != function {
			continue
		}
		return source[set.Position(f.Body.Lbrace).Offset+1 : set.Position(f.Body.Rbrace).Offset]
	}
	t.Fatalf("%s has no function %s", file, function)
	return ""
}
