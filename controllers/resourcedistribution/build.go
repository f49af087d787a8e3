package resourcedistribution

import (
	"encoding/json"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// keysAnnotation is on a copy whose resource has labels or annotations of its own, and holds their keys. A key that the
// resource no longer has is removed from the copy.
const keysAnnotation = "kruise.io/resourcedistribution.resource.keys"

// keys are those of labels and annotations.
type keys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// resource builds the copies of a distribution.
type resource struct {
	*unstructured.Unstructured

	owner *resourceDistribution
	// hash is that of spec.resource, as in the annotation of the reference.
	hash string
}

func (r *resource) kind() stored.Kind { return stored.Kind{GVK: r.GroupVersionKind()} }

// named returns an object that has the name of a copy alone.
func (r *resource) named(namespace string) *unstructured.Unstructured {
	return r.kind().Named(types.NamespacedName{Namespace: namespace, Name: r.GetName()})
}

// creation returns the write that creates a copy.
func (r *resource) creation(namespace string) *write.Write {
	object := r.named(namespace)
	r.apply(object, keys{})
	r.record(object)
	return &write.Write{Verb: write.Create, Object: object}
}

// deletion returns the write that deletes this version of a copy.
func (r *resource) deletion(of metav1.Object) *write.Write {
	w := r.kind().Deletion(of)
	w.SameVersion = true
	return w
}

// writes returns the ordered writes that turn the live object of the name into a copy; none where it has the resource
// already, whatever its hash and the API version of its owner are. live is nil where there is no object.
func (r *resource) writes(namespace string, live *unstructured.Unstructured) ([]*write.Write, *failed) {
	switch {
	case live == nil:
		return []*write.Write{r.creation(namespace)}, nil
	case !metav1.IsControlledBy(live, r.owner):
		return nil, &failed{condition: v1beta1.ResourceDistributionConflictOccurred, text: textConflict}
	case live.GetDeletionTimestamp() != nil:
		return nil, &failed{condition: v1beta1.ResourceDistributionUpdateResourceFailed, text: textDeleting}
	}
	var recorded keys // an annotation that another writer has broken removes nothing
	_ = json.Unmarshal([]byte(live.GetAnnotations()[keysAnnotation]), &recorded)
	if live.Object["immutable"] == false {
		delete(live.Object, "immutable")
	}
	wanted := live.DeepCopy()
	r.apply(wanted, recorded)
	switch {
	case apiequality.Semantic.DeepEqual(live.Object, wanted.Object):
		return nil, nil
	case isFixed(live, wanted):
		return []*write.Write{r.deletion(live), r.creation(namespace)}, nil
	}
	r.record(wanted)
	return []*write.Write{stored.Change(live, wanted)}, nil
}

// apply replaces the content of an object, and adds labels, annotations, finalizers and owners. It removes the recorded
// labels and annotations that the resource lacks.
func (r *resource) apply(object *unstructured.Unstructured, recorded keys) {
	object.SetLabels(merge(object.GetLabels(), recorded.Labels, r.GetLabels()))
	object.SetAnnotations(merge(object.GetAnnotations(), recorded.Annotations, r.GetAnnotations()))
	finalizers := object.GetFinalizers()
	for _, name := range r.GetFinalizers() {
		if !slices.Contains(finalizers, name) {
			finalizers = append(finalizers, name)
		}
	}
	object.SetFinalizers(finalizers)
	for _, ref := range r.GetOwnerReferences() {
		if ref.UID != r.owner.UID {
			own(object, ref)
		}
	}
	for key := range content(object) {
		delete(object.Object, key)
	}
	maps.Copy(object.Object, content(r.Unstructured))
}

// content returns the fields that are neither the kind nor metadata.
func content(object *unstructured.Unstructured) map[string]any {
	all := maps.Clone(object.Object)
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(all, key)
	}
	return all
}

func merge(have map[string]string, stale []string, want map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, have)
	for _, key := range stale {
		delete(all, key)
	}
	maps.Copy(all, want)
	if len(all) == 0 {
		return nil
	}
	return all
}

// own adds an owner, or replaces the reference to the same owner.
func own(object *unstructured.Unstructured, ref metav1.OwnerReference) {
	refs := object.GetOwnerReferences()
	at := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == ref.UID })
	if at < 0 {
		refs = append(refs, ref)
	} else {
		refs[at] = ref
	}
	object.SetOwnerReferences(refs)
}

// record sets what names the distribution.
func (r *resource) record(object *unstructured.Unstructured) {
	own(object, *metav1.NewControllerRef(r.owner, gvk()))
	annotations := merge(object.GetAnnotations(), []string{keysAnnotation}, map[string]string{
		v1beta1.ResourceDistributionHashAnnotation: r.hash, v1beta1.ResourceDistributionFromAnnotation: r.owner.Name,
	})
	all := keys{slices.Sorted(maps.Keys(r.GetLabels())), slices.Sorted(maps.Keys(r.GetAnnotations()))}
	if text, err := json.Marshal(all); err == nil && string(text) != "{}" {
		annotations[keysAnnotation] = string(text)
	}
	object.SetAnnotations(annotations)
}

// isFixed reports whether no update can turn an object into another one.
func isFixed(live, wanted *unstructured.Unstructured) bool {
	return live.Object["type"] != wanted.Object["type"] ||
		live.Object["immutable"] == true && !apiequality.Semantic.DeepEqual(content(live), content(wanted))
}
