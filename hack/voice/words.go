package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// finding is a refused word.
type finding struct {
	path       string
	line       int
	word, want string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q: %s", f.path, f.line, f.word, f.want)
}

// word is a pattern that is refused, and what to write instead.
type word struct {
	pattern *regexp.Regexp
	want    string
}

func words() []word {
	const subject = "name the component, the object or the user"
	list := []struct{ pattern, want string }{
		{`nobody|somebody|whoever`, subject},
		{`anew`, "restart, recreate or again"},
		{`(?:let|lets|letting) go`, "release"},
		{`(?:lead|leads|led) on`, "continue or cause"},
		{`(?:come|comes|came) of`, "result, or name the cause first"},
		{`(?:is|are|was|were|be) at work`, "run"},
		{`(?:tell|tells|told|telling)`, "report, return or describe"},
		{`(?:know|knows) of`, "observe or have"},
		{`crews?`, "workers"},
	}
	all := make([]word, 0, len(list))
	for _, l := range list {
		all = append(all, word{regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(l.pattern, " ", `\s+`) + `)\b`), l.want})
	}
	return all
}

// in returns the refused words of a text that begins at a line.
func in(path string, line int, text string) []finding {
	var found []finding
	for _, w := range words() {
		for _, at := range w.pattern.FindAllStringIndex(text, -1) {
			one := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
			found = append(found, finding{path, line + strings.Count(text[:at[0]], "\n"), one, w.want})
		}
	}
	return found
}

// ofDocument reads a page, but for its code.
func ofDocument(path string, text []byte) ([]finding, error) {
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	prose := code.ReplaceAllStringFunc(string(text), func(s string) string {
		return strings.Repeat("\n", strings.Count(s, "\n"))
	})
	return in(path, 1, prose), nil
}

// ofCode reads the comments of a package and of exported symbols, with their fields and methods.
func ofCode(path string, text []byte) ([]finding, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []finding
	add := func(group *ast.CommentGroup) {
		if group == nil {
			return
		}
		for _, c := range group.List {
			found = append(found, in(path, set.Position(c.Pos()).Line, c.Text)...)
		}
	}
	add(file.Doc)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && exportedReceiver(d.Recv) {
				add(d.Doc)
			}
		case *ast.GenDecl:
			ofDeclaration(d, add)
		}
	}
	return found, nil
}

func ofDeclaration(d *ast.GenDecl, add func(*ast.CommentGroup)) {
	exported := false
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				exported = true
				add(s.Doc)
				ofFields(s.Type, add)
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() {
					exported = true
					add(s.Doc)
					add(s.Comment)
					break
				}
			}
		}
	}
	if exported {
		add(d.Doc)
	}
}

// ofFields reads the comments of the exported fields of a struct, and of the methods of an interface.
func ofFields(t ast.Expr, add func(*ast.CommentGroup)) {
	var fields *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return
	}
	for _, f := range fields.List {
		if len(f.Names) == 0 || f.Names[0].IsExported() {
			add(f.Doc)
			add(f.Comment)
		}
	}
}

func exportedReceiver(receiver *ast.FieldList) bool {
	if receiver == nil || len(receiver.List) == 0 {
		return true
	}
	t := receiver.List[0].Type
	if p, is := t.(*ast.StarExpr); is {
		t = p.X
	}
	if i, is := t.(*ast.IndexExpr); is {
		t = i.X
	}
	name, is := t.(*ast.Ident)
	return !is || name.IsExported()
}
