package protection

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Label returns what is wrong with the label of an object of a kind. An invalid value is no error of the API: it
// protects nothing, which the writer of the object should learn.
func Label(k Kind, labels map[string]string) field.ErrorList {
	value, ok := labels[kruise.DeletionProtectionKey]
	path := field.NewPath("metadata", "labels").Key(kruise.DeletionProtectionKey)
	switch kruise.DeletionProtectionType(value) {
	case kruise.DeletionProtectionTypeAlways:
		return nil
	case kruise.DeletionProtectionTypeCascading:
		if len(k.Dependents) > 0 {
			return nil
		}
	}
	if !ok {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, k.Supported())}
}

// Supported returns which values a kind supports, as the detail of an error.
func (k Kind) Supported() string {
	if len(k.Dependents) > 0 {
		return "must be Always or Cascading, as other values protect nothing"
	}
	return "must be Always, as other values do not protect objects of kind " + k.Kind
}
