package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// reconcilerFiles are the files that a reconciler may have; the package comment explains any other one by its name. A
// reader of one controller knows where to look in all of them.
func reconcilerFiles() []string {
	return slices.Concat(pureFiles(), []string{
		"doc.go", "options.go", "reconciler.go", "watch.go", "observe.go", "events.go",
	})
}

// pureFiles are the files that decide: values in, a pass out. The file build.go has the objects that a workload
// creates.
func pureFiles() []string { return []string{"plan.go", "status.go", "build.go"} }

// inputOutput are the packages without which a file neither reads nor writes.
func inputOutput() []string {
	return []string{
		"context", "sigs.k8s.io/controller-runtime/pkg/client", "k8s.io/client-go", module + "/driver/runtimeclient",
		module + "/driver/clientgo",
	}
}

// longestReconcile is in lines: Reconcile reads observe, plan, run, report.
const longestReconcile = 40

// checkReconciler returns what is wrong with the files of a reconciler.
func checkReconciler(p listed) ([]string, error) {
	path := relative(p.ImportPath)
	if parent, kind, is := strings.Cut(path, "/"); parent != "controllers" || !is || strings.Contains(kind, "/") {
		return nil, nil
	}
	var findings []string
	for _, name := range p.GoFiles {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		if !slices.Contains(reconcilerFiles(), name) && !explains(p, name) {
			findings = append(findings, fmt.Sprintf("%s: %s is a name of its own, which doc.go does not explain", path, name))
		}
		for _, i := range file.Imports {
			imported := strings.Trim(i.Path.Value, `"`)
			if slices.Contains(pureFiles(), name) && within(imported, inputOutput()) != "" {
				findings = append(findings, fmt.Sprintf("%s: %s imports %s: it decides, and does no I/O", path, name, imported))
			}
		}
		if n := lengthOfReconcile(files, file); n > longestReconcile {
			findings = append(findings, fmt.Sprintf("%s: Reconcile has %d lines, more than %d", path, n, longestReconcile))
		}
	}
	return findings, nil
}

// lengthOfReconcile returns the lines of the method Reconcile of a file; 0 where it has none.
func lengthOfReconcile(files *token.FileSet, file *ast.File) int {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "Reconcile" {
			return files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
		}
	}
	return 0
}

// explains reports whether the package comment names a file.
func explains(p listed, name string) bool {
	doc, err := os.ReadFile(filepath.Join(p.Dir, "doc.go"))
	return err == nil && strings.Contains(string(doc), name)
}
