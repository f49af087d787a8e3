// Package exported lists the packages of a module, and the identifiers that its public packages export.
//
// The types come from the export data of the compiler, so that nothing is type-checked twice.
package exported

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Package is a package of the module, as go list describes it.
type Package struct {
	Dir, ImportPath, Name              string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
	Module                             *struct{ Path string }
	// Export is the file with export data. It takes the argument -export.
	Export string
	// Doc and Deps take the argument -json=Doc,Deps.
	Doc  string
	Deps []string
}

// Own reports whether the package belongs to the module with a path.
func (p Package) Own(module string) bool {
	return p.Module != nil && p.Module.Path == module
}

// Path returns the path of the package below its module. It is empty for the root, and for the standard library.
func (p Package) Path() string {
	if p.Module == nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/")
}

// Public reports whether the package is made for programs outside of the module. The root has documentation alone.
func (p Package) Public() bool {
	if p.Name == "main" || p.Path() == "" || len(p.GoFiles) == 0 {
		return false
	}
	return Public(p.Path())
}

// Public reports whether the packages at a path below the module are made for programs outside of it.
func Public(path string) bool {
	parts := strings.Split(path, "/")
	return parts[0] != "hack" && parts[0] != "examples" && !slices.ContainsFunc(parts, func(part string) bool {
		return part == "internal" || strings.HasSuffix(part, "test")
	})
}

// List returns the packages that match the arguments of go list in the module at dir.
func List(dir string, args ...string) ([]Package, error) {
	const fields = "-json=Dir,ImportPath,Name,Export,GoFiles,Imports,TestImports,XTestImports,Module"
	out, err := Go(dir, append([]string{"list", fields}, args...)...)
	if err != nil {
		return nil, err
	}
	var packages []Package
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
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

// Go runs the go command in a directory and returns its output.
func Go(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
}

// Importer returns an importer of packages that List returned with -export. Their positions are in the set.
func Importer(set *token.FileSet, packages []Package) types.Importer {
	files := map[string]string{}
	for _, p := range packages {
		files[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("find export data: %s is not listed", path)
		}
		return os.Open(files[path])
	})
}
