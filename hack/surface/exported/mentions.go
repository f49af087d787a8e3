package exported

import (
	"go/types"
	"maps"
	"slices"
	"strings"
)

// mentions collects the types of internal packages of a module that a type mentions.
type mentions struct {
	module string
	found  map[string]bool
}

func (m mentions) sorted() []string { return slices.Sorted(maps.Keys(m.found)) }

// walk looks into a type. It does not look into declared types: what these mention is a finding of their own package.
func (m mentions) walk(t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		m.declared(t.Obj(), t.TypeArgs())
	case *types.Named:
		m.declared(t.Obj(), t.TypeArgs())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels and maps
		if k, is := t.(*types.Map); is {
			m.walk(k.Key())
		}
		m.walk(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			m.walk(v.Type())
		}
	case *types.Signature:
		for p := range t.TypeParams().TypeParams() {
			m.walk(p.Constraint())
		}
		m.walk(t.Params())
		m.walk(t.Results())
	default:
		m.literal(t)
	}
}

// literal looks into structs and interfaces without a name.
func (m mentions) literal(t types.Type) {
	switch t := t.(type) {
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				m.walk(f.Type())
			}
		}
	case *types.Interface:
		for f := range t.ExplicitMethods() {
			if f.Exported() {
				m.walk(f.Type())
			}
		}
		for e := range t.EmbeddedTypes() {
			m.walk(e)
		}
	case *types.Union:
		for term := range t.Terms() {
			m.walk(term.Type())
		}
	}
}

func (m mentions) declared(o *types.TypeName, args *types.TypeList) {
	for arg := range args.Types() {
		m.walk(arg)
	}
	if o.Pkg() == nil {
		return
	}
	path, own := strings.CutPrefix(o.Pkg().Path(), m.module+"/")
	if own && slices.Contains(strings.Split(path, "/"), "internal") {
		m.found[path+"."+o.Name()] = true
	}
}
