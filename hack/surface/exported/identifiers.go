package exported

import (
	"cmp"
	"fmt"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// Surface is a public package and what it exports.
type Surface struct {
	// Path is that below the module.
	Path        string
	Identifiers []Identifier
}

// Identifier is an exported constant, variable, function or type; or a method or field of an exported type.
type Identifier struct {
	// Name is that of the identifier, Type.Name for members.
	Name string
	// Text describes the identifier with its type, on one line.
	Text string
	// Mentions are the types of internal packages of the module that the identifier mentions, sorted.
	Mentions []string
}

// Surfaces returns what each public package of the module at dir exports, sorted.
func Surfaces(dir string) ([]Surface, error) {
	all, err := List(dir, "./...")
	if err != nil {
		return nil, err
	}
	args := []string{"-export"}
	for _, p := range all {
		if p.Public() {
			args = append(args, p.ImportPath)
		}
	}
	if len(args) == 1 {
		return nil, nil
	}
	public, err := List(dir, args...)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	from := Importer(set, public)
	var surfaces []Surface
	for _, p := range public {
		imported, err := from.Import(p.ImportPath)
		if err != nil {
			return nil, fmt.Errorf("import %s: %w", p.ImportPath, err)
		}
		r := reader{set: set, pkg: imported, module: p.Module.Path}
		surfaces = append(surfaces, Surface{p.Path(), r.read()})
	}
	slices.SortFunc(surfaces, func(a, b Surface) int { return cmp.Compare(a.Path, b.Path) })
	return surfaces, nil
}

// reader reads the exported identifiers of one package.
type reader struct {
	set    *token.FileSet
	pkg    *types.Package
	module string
	found  []Identifier
}

func (r *reader) read() []Identifier {
	scope := r.pkg.Scope()
	for _, name := range scope.Names() {
		if !token.IsExported(name) {
			continue
		}
		switch o := scope.Lookup(name).(type) {
		case *types.Const:
			r.add(name, "const "+name+" "+r.text(o.Type())+" = "+o.Val().ExactString(), o.Type())
		case *types.Var:
			r.add(name, "var "+name+" "+r.text(o.Type()), o.Type())
		case *types.Func:
			r.function("func ", name, o)
		case *types.TypeName:
			r.declared(o)
		}
	}
	slices.SortFunc(r.found, func(a, b Identifier) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(r.found, func(a, b Identifier) bool { return a.Name == b.Name && a.Text == b.Text })
}

func (r *reader) add(name, text string, mentioned ...types.Type) {
	m := mentions{module: r.module, found: map[string]bool{}}
	for _, t := range mentioned {
		m.walk(t)
	}
	r.found = append(r.found, Identifier{name, text, m.sorted()})
}

// function adds a function or a method. The prefix has what stands before its name.
func (r *reader) function(prefix, name string, f *types.Func) {
	s := f.Signature()
	short := name[strings.LastIndex(name, ".")+1:]
	r.add(name, prefix+short+r.parameters(s.TypeParams())+strings.TrimPrefix(r.text(plain(s)), "func"), s)
}

// declared adds a type and its members.
func (r *reader) declared(o *types.TypeName) {
	name := o.Name()
	if alias, is := o.Type().(*types.Alias); is {
		target := []types.Type{alias.Rhs()}
		for p := range alias.TypeParams().TypeParams() {
			target = append(target, p.Constraint())
		}
		r.add(name, "type "+name+r.parameters(alias.TypeParams())+" = "+r.text(alias.Rhs()), target...)
		if hidden, is := alias.Rhs().(*types.Named); is && hidden.Obj().Pkg() == r.pkg && !hidden.Obj().Exported() {
			r.members(name, hidden, map[*types.Named]bool{})
		}
		return
	}
	named, is := o.Type().(*types.Named)
	if !is {
		return
	}
	var mentioned []types.Type
	for p := range named.TypeParams().TypeParams() {
		mentioned = append(mentioned, p.Constraint())
	}
	text := "type " + name + r.parameters(named.TypeParams()) + " "
	switch u := named.Underlying().(type) {
	case *types.Struct:
		text += "struct"
	case *types.Interface:
		text += r.interfaceText(u)
	default:
		text += r.text(u)
		mentioned = append(mentioned, u)
	}
	r.add(name, text, mentioned...)
	r.members(name, named, map[*types.Named]bool{})
}

// interfaceText describes an interface without its methods.
func (*reader) interfaceText(t *types.Interface) string {
	for m := range t.ExplicitMethods() {
		if !m.Exported() {
			return "interface, with methods that are not exported"
		}
	}
	return "interface"
}

// members adds the methods and fields of a type below the name of an exported one. An embedded type that is not
// exported gives its members to the type that embeds it.
func (r *reader) members(name string, t *types.Named, seen map[*types.Named]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	for m := range t.Methods() {
		if m.Exported() && !r.generated(m) {
			receiver := name
			if _, is := m.Signature().Recv().Type().(*types.Pointer); is {
				receiver = "*" + name
			}
			r.function("method ("+receiver+") ", name+"."+m.Name(), m)
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			r.field(name, f, seen)
		}
	case *types.Interface:
		for m := range u.ExplicitMethods() {
			if m.Exported() {
				r.function("method ("+name+") ", name+"."+m.Name(), m)
			}
		}
		for e := range u.EmbeddedTypes() {
			text := r.text(e)
			r.add(name+"."+text[strings.LastIndex(text, ".")+1:], "embeds ("+name+") "+text, e)
		}
	}
}

func (r *reader) field(name string, f *types.Var, seen map[*types.Named]bool) {
	if f.Exported() {
		word := "field"
		if f.Embedded() {
			word = "embeds"
		}
		r.add(name+"."+f.Name(), word+" ("+name+") "+f.Name()+" "+r.text(f.Type()), f.Type())
		return
	}
	t := f.Type()
	if p, is := t.(*types.Pointer); is {
		t = p.Elem()
	}
	if embedded, is := t.(*types.Named); is && f.Embedded() {
		r.members(name, embedded, seen)
	}
}

// generated reports whether controller-gen or a like tool wrote a method.
func (r *reader) generated(f *types.Func) bool {
	return strings.HasPrefix(filepath.Base(r.set.Position(f.Pos()).Filename), "zz_")
}
