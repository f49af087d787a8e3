package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/hack/surface/exported"
)

// inside reports whether a path is that of an element, such as controllers, or lies below it.
func inside(file, element string) bool {
	return file == element || strings.HasPrefix(file, element+"/")
}

// helpsTests reports whether a file is a test, or belongs to a package that only tests import.
func helpsTests(file string) bool {
	inTest := slices.ContainsFunc(strings.Split(path.Dir(file), "/"), func(part string) bool {
		return strings.HasSuffix(part, "test")
	})
	return strings.HasSuffix(file, "_test.go") || inTest && !inside(file, "test")
}

// tools reports whether a file without tests belongs to test/ or hack/.
func tools(file string) bool {
	return !helpsTests(file) && (inside(file, "test") || inside(file, "hack"))
}

// library reports whether a file belongs to what an embedder compiles: all but tests, tools, examples and manifests.
func library(file string) bool {
	return !helpsTests(file) && !tools(file) && !inside(file, "examples") && !inside(file, "config")
}

// filter returns the files that a condition selects by their paths.
func filter(files []source, selects func(string) bool) []source {
	var selected []source
	for _, f := range files {
		if selects(f.path) {
			selected = append(selected, f)
		}
	}
	return selected
}

// directories returns how many directories the root has, without hidden ones and bin.
func directories(root string) (int, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return 0, fmt.Errorf("read root: %w", err)
	}
	n := 0
	for _, e := range entries {
		if e.IsDir() && !ignored(e.Name()) {
			n++
		}
	}
	return n, nil
}

// small is the most lines of code that a small package has.
const small = 45

// internals are numbers of internal packages. Those of at most 45 lines and with one importer do not help tests.
type internals struct {
	all, small, single int
	// nested stand below another directory than internal/.
	nested int
}

func internalsOf(packages []exported.Package, files []source) internals {
	code, importers := map[string]int{}, map[string]int{}
	for _, f := range filter(files, library) {
		code[path.Dir(f.path)] += len(f.code)
	}
	for _, p := range packages {
		for _, i := range p.Imports {
			importers[i]++
		}
	}
	var n internals
	for _, p := range packages {
		file := p.Path() + "/"
		switch {
		case len(p.GoFiles) == 0:
		case !inside(p.Path(), "internal"):
			if library(file) && slices.Contains(strings.Split(p.Path(), "/"), "internal") {
				n.nested++
			}
		default:
			n.all++
			if library(file) && code[p.Path()] <= small {
				n.small++
			}
			if library(file) && importers[p.ImportPath] == 1 {
				n.single++
			}
		}
	}
	return n
}

// names returns how many different names the files of the packages in a directory have, and how many packages.
func names(files []source, directory string) (different, packages int) {
	all, dirs := map[string]bool{}, map[string]bool{}
	for _, f := range filter(files, library) {
		if dir := path.Dir(f.path); path.Dir(dir) == directory {
			all[path.Base(f.path)], dirs[dir] = true, true
		}
	}
	return len(all), len(dirs)
}

// compiled returns how many packages of the module the import of one compiles, itself included.
func compiled(root, imported string) (int, error) {
	packages, err := exported.List(root, "-deps", "./"+imported)
	if err != nil {
		return 0, err
	}
	n := 0
	own := packages[len(packages)-1] // dependencies come first
	for _, p := range packages {
		if p.Own(own.Module.Path) {
			n++
		}
	}
	return n, nil
}
