package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"

	"github.com/kruisekit/kruisekit/hack/surface/exported"
)

// tags are the build tags of the test levels, so that their files are seen too.
const tags = "envtest,simulated,e2e,nightly"

// listed is a package of the module.
type listed = exported.Package

// goMod is what go mod edit says about a go.mod.
type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct{ Old struct{ Path string } }
}

func readModule(dir string) (goMod, error) {
	out, err := exported.Go(dir, "mod", "edit", "-json")
	if err != nil {
		return goMod{}, err
	}
	var m goMod
	if err := json.Unmarshal(out, &m); err != nil {
		return goMod{}, fmt.Errorf("decode go.mod: %w", err)
	}
	return m, nil
}

func listPackages(dir string) ([]listed, error) {
	// -e, because a package that does not compile yet still has imports to judge.
	return exported.List(dir, "-e", "-tags", tags, "-json=Doc,Deps", "./...")
}

// checkInits finds the init functions of a library package: a library does nothing until it is called.
func checkInits(p listed) ([]string, error) {
	path := relative(p.ImportPath)
	if placeOf(path).layer >= examples {
		return nil, nil
	}
	var findings []string
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				findings = append(findings, fmt.Sprintf("%s: %s has an init function", orRoot(path), name))
			}
		}
	}
	return findings, nil
}
