package main

import (
	"fmt"
	"go/importer"
	"go/token"
	gotypes "go/types"
	"io"
	"os"
	"regexp"
	"strings"
)

// checkExported finds the exported identifiers of public packages that mention a type of an internal package, which an
// embedder cannot name. The packages have export data.
func checkExported(packages []listed) ([]string, error) {
	data := map[string]string{}
	for _, p := range packages {
		data[p.ImportPath] = p.Export
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(data[path])
	})
	var findings []string
	for _, p := range packages {
		path := relative(p.ImportPath)
		if p.Name == "main" || p.Export == "" || !public(path) {
			continue
		}
		pkg, err := from.Import(p.ImportPath)
		if err != nil {
			return nil, fmt.Errorf("import %s: %w", path, err)
		}
		for _, name := range pkg.Scope().Names() {
			o := pkg.Scope().Lookup(name)
			for _, text := range mentioned(o) {
				if found := internalType().FindString(text); found != "" && o.Exported() {
					findings = append(findings, fmt.Sprintf("%s: %s mentions %s", path, name, found))
				}
			}
		}
	}
	return findings, nil
}

func internalType() *regexp.Regexp {
	return regexp.MustCompile(regexp.QuoteMeta(module) + `/(\w+/)*internal/[\w/]+\.\w+`)
}

// public reports whether a package is made for programs outside of the module.
func public(path string) bool {
	layer := placeOf(path).layer
	return path != "" && layer < examples && !strings.Contains("/"+path+"/", "/internal/") && !testOnly(path)
}

// mentioned returns the texts of the types that an identifier, its exported fields and its methods mention.
func mentioned(o gotypes.Object) []string {
	declared, ok := o.(*gotypes.TypeName)
	if !ok {
		return []string{o.Type().String()}
	}
	if alias, ok := declared.Type().(*gotypes.Alias); ok {
		return []string{alias.Rhs().String()}
	}
	named, ok := declared.Type().(*gotypes.Named)
	if !ok {
		return nil
	}
	texts := members(named)
	for p := range named.TypeParams().TypeParams() {
		texts = append(texts, p.Constraint().String())
	}
	return texts
}

// members returns the types of the exported members of a type, also of those that embedded types give to it.
func members(named *gotypes.Named) []string {
	var texts []string
	for m := range named.Methods() {
		if m.Exported() {
			texts = append(texts, m.Type().String())
		}
	}
	fields, ok := named.Underlying().(*gotypes.Struct)
	if !ok {
		return append(texts, named.Underlying().String())
	}
	for f := range fields.Fields() {
		embedded := gotypes.Unalias(f.Type())
		if pointer, ok := embedded.(*gotypes.Pointer); ok {
			embedded = gotypes.Unalias(pointer.Elem())
		}
		inner, ok := embedded.(*gotypes.Named)
		switch {
		case f.Exported():
			texts = append(texts, f.Type().String())
		case f.Embedded() && ok && inner != named:
			texts = append(texts, members(inner)...)
		}
	}
	return texts
}
