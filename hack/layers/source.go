package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// tags are the build tags of the test levels, so that their files are seen too.
const tags = "envtest,simulated,e2e,nightly"

// listed is a package of the module, as go list describes it.
type listed struct {
	Dir, ImportPath, Name, Doc         string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
	Deps                               []string
	// Export is the file with the export data of the compiler.
	Export string
}

// goMod is what go mod edit says about a go.mod.
type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct{ Old struct{ Path string } }
}

func readModule(dir string) (goMod, error) {
	out, err := goCommand(dir, "mod", "edit", "-json")
	if err != nil {
		return goMod{}, err
	}
	var m goMod
	if err := json.Unmarshal(out, &m); err != nil {
		return goMod{}, fmt.Errorf("decode go.mod: %w", err)
	}
	return m, nil
}

func listPackages(dir string, args ...string) ([]listed, error) {
	const fields = "-json=Dir,ImportPath,Name,Doc,GoFiles,Imports,TestImports,XTestImports,Deps,Export"
	out, err := goCommand(dir, append([]string{"list", fields}, args...)...)
	if err != nil {
		return nil, err
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode go list: %w", err)
		}
		packages = append(packages, p)
	}
}

func goCommand(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
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
