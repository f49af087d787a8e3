package exported

import (
	"go/ast"
	"go/parser"
	"go/types"
	"path"
	"regexp"
	"strings"
)

// text describes a type without the names of parameters, which a caller does not depend on.
func (r *reader) text(t types.Type) string {
	text := types.TypeString(t, r.qualify)
	parsed, err := parser.ParseExpr(text)
	if err != nil {
		return text // such as untyped string, and a union with more than one term
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if f, is := n.(*ast.FuncType); is {
			unname(f.Params)
			unname(f.Results)
		}
		return true
	})
	return types.ExprString(parsed)
}

// unname removes the names of parameters. Each stands in a field of its own.
func unname(list *ast.FieldList) {
	if list == nil {
		return
	}
	for _, f := range list.List {
		f.Names = nil
	}
}

// qualify names a package as files import it by convention: metav1, not v1.
func (r *reader) qualify(p *types.Package) string {
	switch {
	case p == r.pkg:
		return ""
	case regexp.MustCompile(`^v\d`).MatchString(p.Name()):
		return path.Base(path.Dir(p.Path())) + p.Name()
	}
	return p.Name()
}

// parameters describes type parameters with their brackets.
func (r *reader) parameters(list *types.TypeParamList) string {
	var all []string
	for p := range list.TypeParams() {
		all = append(all, p.Obj().Name()+" "+r.text(p.Constraint()))
	}
	if len(all) == 0 {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// plain returns a signature without receiver and type parameters.
func plain(s *types.Signature) *types.Signature {
	return types.NewSignatureType(nil, nil, nil, s.Params(), s.Results(), s.Variadic())
}
