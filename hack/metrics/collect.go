package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// metric is one family.
type metric struct {
	name, kind, help string
	labels           []string
}

// collect finds the metrics in the code of all programs, sorted by name.
func collect(root string) ([]metric, error) {
	found := map[string]metric{}
	for _, dir := range []string{"controllers", "daemon", "driver", "examples", "internal", "ledger", "webhooks"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, declaration := range file.Decls {
				if f, ok := declaration.(*ast.FuncDecl); ok && f.Body != nil {
					for _, m := range inFunction(f) {
						found[m.name] = m
					}
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	all := make([]metric, 0, len(found))
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

var (
	kinds = regexp.MustCompile(`^New(Counter|Gauge|Histogram|Summary)(Vec|Func)?$`)
	opts  = regexp.MustCompile(`^(Counter|Gauge|Histogram|Summary)Opts$`)
	build = regexp.MustCompile(`^kruise_\w+_build_info$`)
)

// inFunction returns the metrics that a function makes. Calls are seen from the outside in, so that the innermost that
// says something about a metric is the last.
func inFunction(f *ast.FuncDecl) []metric {
	var all []metric
	var labels []string // of a vector that is made elsewhere in the function
	kind := ""
	var stack []ast.Node
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		defer func() { stack = append(stack, n) }()
		switch n := n.(type) {
		case *ast.CallExpr:
			name := called(n)
			if _, named := firstOf(n).(*ast.Ident); named && kinds.MatchString(name) && len(n.Args) == 2 {
				labels, kind = listed(n.Args[1]), strings.ToLower(kinds.FindStringSubmatch(name)[1])
			}
			if name == "NewDesc" && len(n.Args) == 4 {
				all = append(all, metric{text(n.Args[0]), "gauge", text(n.Args[1]), listed(n.Args[2])})
			}
			if name == "Register" && len(n.Args) == 2 && build.MatchString(text(n.Args[0])) {
				all = append(all, metric{
					text(n.Args[0]), "gauge", "1, with the versions of the program and of Go",
					[]string{"version", "goversion"},
				})
			}
		case *ast.CompositeLit:
			m, ok := options(n)
			if !ok {
				return true
			}
			describe(&m, n, stack)
			all = append(all, m)
		}
		return true
	})
	for i := range all {
		if all[i].kind == "" {
			all[i].kind, all[i].labels = kind, labels
		}
	}
	return all
}

// describe takes the type and the labels from the call that an options literal is an argument of.
func describe(m *metric, literal *ast.CompositeLit, stack []ast.Node) {
	if s, ok := literal.Type.(*ast.SelectorExpr); ok && opts.MatchString(s.Sel.Name) {
		m.kind = strings.ToLower(opts.FindStringSubmatch(s.Sel.Name)[1])
	}
	if len(stack) == 0 {
		return
	}
	call, ok := stack[len(stack)-1].(*ast.CallExpr)
	if !ok {
		return
	}
	for _, argument := range call.Args {
		m.labels = append(m.labels, listed(argument)...)
		if label := text(argument); label != "" {
			m.labels = append(m.labels, label) // one that takes a single label
		}
	}
}

// options reads the literal of options with a name and a help.
func options(literal *ast.CompositeLit) (metric, bool) {
	var m metric
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return m, false
		}
		key, _ := pair.Key.(*ast.Ident)
		switch {
		case key == nil:
			return m, false
		case key.Name == "Name":
			m.name = text(pair.Value)
		case key.Name == "Help":
			m.help = text(pair.Value)
		case key.Name == "ConstLabels":
			m.labels = append(m.labels, keys(pair.Value)...)
		}
	}
	return m, m.name != "" && m.help != ""
}

func firstOf(call *ast.CallExpr) ast.Expr {
	if len(call.Args) == 0 {
		return nil
	}
	return call.Args[0]
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// text is that of a literal, or of a sum of them.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		return text(e.X) + text(e.Y)
	}
	return ""
}

// listed are the strings of a literal of a slice.
func listed(e ast.Expr) []string {
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	if _, slice := literal.Type.(*ast.ArrayType); !slice {
		return nil
	}
	var all []string
	for _, element := range literal.Elts {
		all = append(all, text(element))
	}
	return all
}

func keys(e ast.Expr) []string {
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var all []string
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			all = append(all, text(pair.Key))
		}
	}
	return all
}
