package ledger

import (
	"cmp"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// key identifies an object among all that an owner may have: a node has pods of many namespaces, and a Ledger of an
// interface type or of untyped objects holds several kinds.
type key struct {
	name types.NamespacedName
	// kind is that of an object whose Go type does not show its kind.
	kind schema.GroupKind
	// goType shows the kind of the others: clients leave their TypeMeta empty, or not.
	goType reflect.Type
}

func keyOf(object client.Object) key {
	k := key{name: client.ObjectKeyFromObject(object)}
	switch object.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		k.kind = object.GetObjectKind().GroupVersionKind().GroupKind()
	default:
		k.goType = reflect.TypeOf(object)
	}
	return k
}

// compareKeys orders keys by namespace, name and kind.
func compareKeys(a, b key) int {
	return cmp.Or(
		strings.Compare(a.name.Namespace, b.name.Namespace),
		strings.Compare(a.name.Name, b.name.Name),
		strings.Compare(a.kind.String(), b.kind.String()),
		strings.Compare(typeName(a), typeName(b)),
	)
}

func typeName(k key) string {
	if k.goType == nil {
		return ""
	}
	return k.goType.String()
}
