package distribution

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// PatchType is that of updates. A strategic merge patch replaces the data as a whole, and keeps labels, annotations,
// finalizers and owners that other writers have added, without a read.
const PatchType = types.StrategicMergePatchType

// Copy returns the copy to create in a namespace.
func (r *Resource) Copy(namespace string, owner Owner) Object { //nolint:ireturn // whichever kind it is
	meta := metav1.ObjectMeta{
		Namespace: namespace, Name: r.Name, Labels: maps.Clone(r.metadata.Labels), Annotations: r.annotations(owner),
		Finalizers: r.metadata.Finalizers, OwnerReferences: r.owners(owner),
	}
	var immutable *bool
	if r.content.Immutable {
		immutable = &r.content.Immutable
	}
	kind := metav1.TypeMeta{APIVersion: r.Kind.GroupVersion().String(), Kind: r.Kind.Kind}
	if r.Kind.Kind == KindSecret {
		secret := &corev1.Secret{
			TypeMeta: kind, ObjectMeta: meta, Type: r.content.Type, Data: r.content.Data, Immutable: immutable,
		}
		return secret.DeepCopy()
	}
	m := &corev1.ConfigMap{
		TypeMeta: kind, ObjectMeta: meta, Data: map[string]string{}, BinaryData: r.content.Binary, Immutable: immutable,
	}
	for key, value := range r.content.Data {
		m.Data[key] = string(value)
	}
	return m.DeepCopy()
}

func (r *Resource) annotations(owner Owner) map[string]string {
	all := map[string]string{}
	maps.Copy(all, r.metadata.Annotations)
	all[v1beta1.ResourceDistributionHashAnnotation] = r.Hash
	all[v1beta1.ResourceDistributionFromAnnotation] = owner.Name
	if keys := r.keys(); keys != "" {
		all[KeysAnnotation] = keys
	}
	return all
}

func (r *Resource) owners(owner Owner) []metav1.OwnerReference {
	return append(r.others(owner), owner.reference())
}

// others are the owners that the resource declares.
func (r *Resource) others(owner Owner) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(r.metadata.Owners), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.UID
	})
}

// Patch returns the body of an update. It applies to the version that the step was decided upon.
func (r *Resource) Patch(step Step, owner Owner) ([]byte, error) {
	labels, annotations := nullable(r.metadata.Labels), nullable(r.annotations(owner))
	stale := r.stale(step.keys)
	for _, key := range stale.Labels {
		labels[key] = nil
	}
	for _, key := range stale.Annotations {
		annotations[key] = nil
	}
	if r.keys() == "" && step.keys != "" {
		annotations[KeysAnnotation] = nil
	}
	meta := map[string]any{
		"uid": step.UID, "resourceVersion": step.Version, "annotations": annotations, "ownerReferences": r.owners(owner),
	}
	if len(labels) > 0 {
		meta["labels"] = labels
	}
	if len(r.metadata.Finalizers) > 0 {
		meta["finalizers"] = r.metadata.Finalizers
	}
	body := map[string]any{"metadata": meta, "immutable": nil}
	if r.content.Immutable {
		body["immutable"] = true
	}
	if r.Kind.Kind == KindSecret {
		body["type"], body["data"] = r.content.Type, replaced(r.content.Data, step.filled.Data, func(v []byte) any {
			return v
		})
	} else {
		body["data"] = replaced(r.content.Data, step.filled.Data, func(v []byte) any { return string(v) })
		body["binaryData"] = replaced(r.content.Binary, step.filled.Binary, func(v []byte) any { return v })
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode update: %w", err)
	}
	return data, nil
}

func nullable(from map[string]string) map[string]any {
	all := make(map[string]any, len(from))
	for key, value := range from {
		all[key] = value
	}
	return all
}

// replaced is a map that replaces that of the object. Where the object has none an API server drops a map with a
// directive as a whole, so that there the map has none.
func replaced(from map[string][]byte, filled bool, encode func([]byte) any) map[string]any {
	all := map[string]any{}
	if filled {
		all["$patch"] = "replace"
	}
	for key, value := range from {
		all[key] = encode(value)
	}
	return all
}
