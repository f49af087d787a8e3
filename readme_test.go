package kruisekit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The Go code in README.md is that of examples which are compiled and run: each block names its own.
func TestReadmeShowsExamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)(<!-- This is (\\w+) in (\\S+)\\. -->\n)?```go\n(.*?)```")
	all := block.FindAllStringSubmatch(string(readme), -1)
	if len(all) == 0 {
		t.Fatal("no Go code in README.md")
	}
	for _, one := range all {
		function, file, code := one[2], one[3], one[4]
		if function == "" {
			t.Errorf("README.md shows code that does not say which example it is:\n%s", code)
			continue
		}
		if body := bodyOf(t, file, function); !strings.Contains(flush(body), flush(code)) {
			t.Errorf("README.md shows other code than %s in %s:\n%s\nwhich is\n%s", function, file, code, body)
		}
	}
}

// flush is code without its indentation: the README shows it at the left.
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
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
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
		return string(source[set.Position(f.Body.Lbrace).Offset+1 : set.Position(f.Body.Rbrace).Offset])
	}
	t.Fatalf("%s has no function %s", file, function)
	return ""
}
