package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// finding is what the rewriter reports of a place in a file. One that is left needs the user.
type finding struct {
	at   token.Position
	text string
	left bool
}

func (f finding) String() string {
	verb := "changed"
	if f.left {
		verb = "left"
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.at.Filename, f.at.Line, verb, f.text)
}

// edit replaces bytes of a source.
type edit struct {
	from, to int
	text     string
}

// rewriter rewrites one file.
type rewriter struct {
	names

	set      *token.FileSet
	file     *ast.File
	edits    []edit
	findings []finding
	// imports are those of the reference, by their local names.
	imports map[string]*imported
	// added are the local names of new imports, by their paths.
	added map[string]string
}

// imported is an import of the reference.
type imported struct {
	place

	spec *ast.ImportSpec
	// kept is how many uses go on to have this import.
	kept int
}

// file rewrites a source; nil where nothing changes.
func (n names) file(filename string, source []byte) ([]byte, []finding, error) {
	r := &rewriter{names: n, set: token.NewFileSet(), imports: map[string]*imported{}, added: map[string]string{}}
	var err error
	if r.file, err = parser.ParseFile(r.set, filename, source, parser.ParseComments); err != nil {
		return nil, nil, fmt.Errorf("parse source: %w", err)
	}
	if r.readImports(); len(r.imports) == 0 || r.mixed() {
		return nil, r.findings, nil
	}
	ast.Inspect(r.file, func(node ast.Node) bool {
		if s, is := node.(*ast.SelectorExpr); is {
			r.selector(s)
		}
		return true
	})
	r.writeImports()
	if len(r.edits) == 0 {
		return nil, r.findings, nil
	}
	changed, err := format.Source(r.apply(source))
	if err != nil {
		return nil, nil, fmt.Errorf("format %s: %w", filename, err)
	}
	return changed, r.findings, nil
}

func (r *rewriter) report(at token.Pos, left bool, text string, args ...any) {
	r.findings = append(r.findings, finding{r.set.Position(at), fmt.Sprintf(text, args...), left})
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	return p
}

// localName is the name of an import in its file.
func localName(spec *ast.ImportSpec) string {
	switch p := importPath(spec); {
	case spec.Name != nil:
		return spec.Name.Name
	case p == apiModule:
		return "apis"
	default:
		return path.Base(p)
	}
}

func (r *rewriter) readImports() {
	for _, spec := range r.file.Imports {
		p, is := placeOf(importPath(spec))
		switch {
		case !is:
			continue
		case p.path == "":
			r.report(spec.Pos(), true, "%s has no counterpart; %s", importPath(spec), p.hint)
			continue
		}
		r.imports[localName(spec)] = &imported{place: p, spec: spec}
	}
}

// mixed reports a file that has the types of both projects. Both cannot be in one scheme, and the file stays as it is.
func (r *rewriter) mixed() bool {
	both := false
	for _, spec := range r.file.Imports {
		for _, i := range r.imports {
			if importPath(spec) == i.path && ofTypes(i.pkg) && i.pkg != "api/kruise" {
				r.report(spec.Pos(), true, "%s is imported beside %s: one scheme cannot have both", i.path, importPath(i.spec))
				both = true
			}
		}
	}
	return both
}

func (r *rewriter) selector(s *ast.SelectorExpr) {
	base, is := s.X.(*ast.Ident)
	var of *imported
	if is && base.Obj == nil { // an import, not a variable
		of = r.imports[base.Name]
	}
	if of == nil {
		if hint := methods()[s.Sel.Name]; hint != "" {
			r.report(s.Sel.Pos(), true, "the method %s has no counterpart; %s", s.Sel.Name, hint)
		}
		return
	}
	to, moved := r.renamed[name{of.old, s.Sel.Name}]
	switch {
	case !ofTypes(of.pkg) || r.exported[name{of.pkg, s.Sel.Name}]:
		of.kept++
	case !moved:
		of.kept++
		r.report(s.Pos(), true, "%s.%s has no counterpart", of.old, s.Sel.Name)
	case to.pkg == of.pkg:
		of.kept++
		r.replace(s.Sel, to.ident)
	default:
		r.replace(base, r.local(here+"/"+to.pkg))
		r.replace(s.Sel, to.ident)
	}
}

// replace replaces an identifier.
func (r *rewriter) replace(old *ast.Ident, text string) {
	if old.Name == text {
		return
	}
	r.edits = append(r.edits, edit{r.set.Position(old.Pos()).Offset, r.set.Position(old.End()).Offset, text})
	r.report(old.Pos(), false, "%s is %s", old.Name, text)
}

// local returns the name of an import that the file has, or gets.
func (r *rewriter) local(of string) string {
	for local, i := range r.imports {
		if i.path == of {
			i.kept++
			return local
		}
	}
	for _, spec := range r.file.Imports {
		if importPath(spec) == of {
			return localName(spec)
		}
	}
	if r.added[of] == "" {
		local := path.Base(of)
		if strings.HasPrefix(local, "v1") { // apps/v1beta1 is appsv1beta1
			local = path.Base(path.Dir(of)) + local
		}
		for r.taken(local) {
			local += "x"
		}
		r.added[of] = local
	}
	return r.added[of]
}

// taken reports whether a name is used in the file.
func (r *rewriter) taken(local string) bool {
	found := false
	ast.Inspect(r.file, func(node ast.Node) bool {
		i, is := node.(*ast.Ident)
		found = found || is && i.Name == local
		return !found
	})
	return found
}

// writeImports changes the paths of the imports that are still used, removes the others, and adds new ones.
func (r *rewriter) writeImports() {
	var added []string
	for of, local := range r.added {
		added = append(added, fmt.Sprintf("%s %q", local, of))
	}
	slices.Sort(added)
	for local, i := range r.imports {
		from, to := r.set.Position(i.spec.Pos()).Offset, r.set.Position(i.spec.End()).Offset
		text := strconv.Quote(i.path)
		switch {
		case i.spec.Name != nil && (local == "_" || local == "."):
			text = local + " " + text
			if local == "." {
				r.report(i.spec.Pos(), true, "the identifiers of a dot import are not checked")
			}
		case i.kept == 0 && len(added) > 0: // all identifiers have moved: a new import takes the line
			text, added = added[0], added[1:]
		case i.kept == 0 && i.used(r):
			text = ""
		case local != path.Base(i.path):
			text = local + " " + text
		}
		r.edits = append(r.edits, edit{from, to, text})
		r.report(i.spec.Pos(), false, "%s is %s", importPath(i.spec), text)
	}
	if len(added) == 0 {
		return
	}
	first := slices.MinFunc(r.file.Imports, func(a, b *ast.ImportSpec) int { return int(a.Pos() - b.Pos()) })
	text, at := strings.Join(added, "\n\t")+"\n\t", r.set.Position(first.Pos()).Offset
	if single := r.single(); single != nil {
		at, text = r.set.Position(single.Pos()).Offset, "import (\n\t"+strings.Join(added, "\n\t")+"\n)\n\n"
	}
	r.edits = append(r.edits, edit{at, at, text})
}

// used reports whether all uses of an import have moved to another one; an import without any use stays.
func (i *imported) used(r *rewriter) bool {
	return slices.ContainsFunc(r.findings, func(f finding) bool { return !f.left && i.kept == 0 }) && i.spec.Name == nil
}

// single returns the declaration of imports where it has no parentheses.
func (r *rewriter) single() *ast.GenDecl {
	for _, decl := range r.file.Decls {
		if d, is := decl.(*ast.GenDecl); is && d.Tok == token.IMPORT && !d.Lparen.IsValid() {
			return d
		}
	}
	return nil
}

// apply makes the edits, the last one first.
func (r *rewriter) apply(source []byte) []byte {
	slices.SortStableFunc(r.edits, func(a, b edit) int { return b.from - a.from })
	changed := bytes.Clone(source)
	for _, e := range r.edits {
		changed = slices.Concat(changed[:e.from], []byte(e.text), changed[e.to:])
	}
	return changed
}

// ofTypes reports whether a package has types of the API. The generated clients have the same names on both sides.
func ofTypes(pkg string) bool {
	return strings.HasPrefix(pkg, "api/") && !strings.HasPrefix(pkg, "api/client/")
}
