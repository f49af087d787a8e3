package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// file is a Go file of the module.
type file struct {
	dir     string
	test    bool
	tags    []string // that its build constraint names, such as envtest or !race
	imports []string
	tests   []string // with examples and fuzz tests
	// concurrent says that the file starts a goroutine, or has tests run in parallel.
	concurrent bool
}

// readModule reads the Go files of the module whose root is given.
func readModule(root string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && ignored(path, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parse(content)
		if err != nil {
			return fmt.Errorf("parse %s: %w", path, err)
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		f.dir, f.test = "./"+filepath.ToSlash(dir), strings.HasSuffix(path, "_test.go")
		files = append(files, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read module: %w", err)
	}
	return files, nil
}

// ignored reports whether the go command does not look into a directory.
func ignored(path, name string) bool {
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod")) // another module
	return err == nil
}

func parse(content []byte) (file, error) {
	var f file
	parsed, err := parser.ParseFile(token.NewFileSet(), "", content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return f, err
	}
	if f.tags, err = buildTags(parsed); err != nil {
		return f, err
	}
	for _, imported := range parsed.Imports {
		path, err := strconv.Unquote(imported.Path.Value)
		if err != nil {
			return f, err
		}
		f.imports = append(f.imports, path)
	}
	for _, declaration := range parsed.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil && isTest(function.Name.Name) {
			f.tests = append(f.tests, function.Name.Name)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			f.concurrent = true
		case *ast.CallExpr:
			// t.Parallel, b.RunParallel, and the goroutines of a sync.WaitGroup.
			if called, ok := n.Fun.(*ast.SelectorExpr); ok {
				f.concurrent = f.concurrent || slices.Contains([]string{"Parallel", "RunParallel", "Go"}, called.Sel.Name)
			}
		}
		return true
	})
	return f, nil
}

// buildTags returns the tags of the build constraint above the package clause.
func buildTags(parsed *ast.File) ([]string, error) {
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			if comment.Pos() > parsed.Package || !constraint.IsGoBuild(comment.Text) {
				continue
			}
			expression, err := constraint.Parse(comment.Text)
			if err != nil {
				return nil, err
			}
			return tagsOf(expression), nil
		}
	}
	return nil, nil
}

func isTest(name string) bool {
	return name != "TestMain" && slices.ContainsFunc([]string{"Test", "Example", "Fuzz"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// tagsOf returns the tags of a constraint, those that must be absent with an exclamation mark.
func tagsOf(e constraint.Expr) []string {
	switch e := e.(type) {
	case *constraint.TagExpr:
		return []string{e.Tag}
	case *constraint.NotExpr:
		tags := tagsOf(e.X)
		for i := range tags {
			tags[i] = "!" + tags[i]
		}
		return tags
	case *constraint.AndExpr:
		return append(tagsOf(e.X), tagsOf(e.Y)...)
	case *constraint.OrExpr:
		return append(tagsOf(e.X), tagsOf(e.Y)...)
	}
	return nil
}

// concurrent returns the directories of packages whose own files of the unit level start goroutines, or have tests that
// run in parallel.
func concurrent(files []file) []string {
	var own []file
	for _, f := range files {
		if f.concurrent && !ofCluster(f) {
			own = append(own, f)
		}
	}
	return dirsOf(own)
}

// ofCluster reports whether a file belongs to a level that needs a cluster.
func ofCluster(f file) bool {
	return slices.ContainsFunc(clusterLevels(), func(level string) bool { return slices.Contains(f.tags, level) })
}
