package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/hack/surface/exported"
)

// clients are the packages whose methods send writes.
func clients() []string {
	return []string{"sigs.k8s.io/controller-runtime/pkg/client", "k8s.io/client-go"}
}

// verbs are the methods of a client that write.
func verbs() []string {
	return []string{
		"Create", "Update", "UpdateStatus", "Patch", "Apply", "ApplyStatus", "Delete", "DeleteAllOf", "DeleteCollection",
	}
}

// writes returns how often the packages in a directory call a method of a client that writes, and below how many of its
// entries they do.
func writes(root, directory string, clients []string) (calls, places int, err error) {
	all, err := exported.List(root, "-export", "-deps", "./"+directory+"/...")
	if err != nil {
		return 0, 0, err
	}
	set := token.NewFileSet()
	from := exported.Importer(set, all)
	var found []string
	for _, p := range all {
		if !inside(p.Path(), directory) {
			continue
		}
		n, err := writesOf(p, set, from, clients)
		if err != nil {
			return 0, 0, err
		}
		if n > 0 {
			place, _, _ := strings.Cut(strings.TrimPrefix(p.Path(), directory+"/"), "/")
			calls, found = calls+n, append(found, place)
		}
	}
	return calls, different(found), nil
}

func writesOf(p exported.Package, set *token.FileSet, from types.Importer, clients []string) (int, error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, fmt.Errorf("parse package: %w", err)
		}
		files = append(files, file)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	if _, err := (&types.Config{Importer: from}).Check(p.ImportPath, set, files, info); err != nil {
		return 0, fmt.Errorf("check types of %s: %w", p.ImportPath, err)
	}
	n := 0
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			call, is := node.(*ast.CallExpr)
			if !is {
				return true
			}
			if method, is := call.Fun.(*ast.SelectorExpr); is && writesWith(info.Selections[method], clients) {
				n++
			}
			return true
		})
	}
	return n, nil
}

// writesWith reports whether a method sends a write of a client.
func writesWith(method *types.Selection, clients []string) bool {
	if method == nil || method.Obj().Pkg() == nil || !slices.Contains(verbs(), method.Obj().Name()) {
		return false
	}
	path := method.Obj().Pkg().Path()
	return slices.ContainsFunc(clients, func(c string) bool { return inside(path, c) })
}
