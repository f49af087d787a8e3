package distribution

import (
	"bytes"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/write"
)

// Object is a Secret or a ConfigMap.
type Object = write.Object

// Owner is the ResourceDistribution that controls copies.
type Owner struct {
	Name string
	UID  types.UID
}

// Controls reports whether an object is a copy of this owner, whatever version its reference has. The UID decides; kind
// and name do where one of both UIDs is missing.
func (o Owner) Controls(object metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	if ref == nil {
		return false
	}
	if ref.UID != "" && o.UID != "" {
		return ref.UID == o.UID
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == v1beta1.GroupVersion.Group && ref.Kind == Kind && ref.Name == o.Name
}

// Kind is that of the owner.
const Kind = "ResourceDistribution"

// reference is that on a new copy.
func (o Owner) reference() metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion:         v1beta1.GroupVersion.String(),
		Kind:               Kind,
		Name:               o.Name,
		UID:                o.UID,
		Controller:         &yes,
		BlockOwnerDeletion: &yes,
	}
}

// difference is what separates a copy from its resource.
type difference struct {
	// content differs: data, binaryData or immutable.
	content bool
	// secretType differs, which no update can change.
	secretType bool
	// metadata differs: labels, annotations, finalizers or owners.
	metadata bool
}

func (d difference) any() bool { return d.content || d.secretType || d.metadata }

// compare compares the live object with the resource. What other writers add to the metadata is no difference.
func (r *Resource) compare(live Object, owner Owner) difference {
	is, have := contentOf(live), metadataOf(live)
	stale := r.stale(live.GetAnnotations()[KeysAnnotation])
	return difference{
		secretType: is.Type != r.content.Type,
		content: is.Immutable != r.content.Immutable || !sameBytes(is.Data, r.content.Data) ||
			!sameBytes(is.Binary, r.content.Binary),
		metadata: !contains(have.Labels, r.metadata.Labels) || !contains(have.Annotations, r.metadata.Annotations) ||
			hasAny(have.Labels, stale.Labels) || hasAny(have.Annotations, stale.Annotations) ||
			!hasAll(have.Finalizers, r.metadata.Finalizers) || !owned(have.Owners, r.others(owner)),
	}
}

func sameBytes(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

func contains(have, wanted map[string]string) bool {
	for key, value := range wanted {
		if is, ok := have[key]; !ok || is != value {
			return false
		}
	}
	return true
}

func hasAny(have map[string]string, names []string) bool {
	return slices.ContainsFunc(names, func(key string) bool { _, ok := have[key]; return ok })
}

func hasAll(have, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(item string) bool { return !slices.Contains(have, item) })
}

func owned(have, wanted []metav1.OwnerReference) bool {
	return !slices.ContainsFunc(wanted, func(ref metav1.OwnerReference) bool {
		return !slices.ContainsFunc(have, func(h metav1.OwnerReference) bool {
			return apiequality.Semantic.DeepEqual(h, ref)
		})
	})
}
