package distribution

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// The kinds that can be distributed.
const (
	KindSecret    = "Secret"
	KindConfigMap = "ConfigMap"
)

// KeysAnnotation is on a copy whose resource has labels or annotations of its own, and holds their keys. A key that the
// resource no longer has is removed from the copy.
const KeysAnnotation = "kruise.io/resourcedistribution.resource.keys"

// maxKeys bounds how much of KeysAnnotation is read, which any writer of a copy may change.
const maxKeys = 64 << 10

// Resource is what each copy has.
type Resource struct {
	// Kind is v1 Secret or ConfigMap.
	Kind schema.GroupVersionKind
	Name string
	// Hash is the SHA-256 of spec.resource, for the annotation of the reference. It is not compared.
	Hash string
	// Digest is that of all that is compared.
	Digest string

	metadata metadata
	content  content
}

// metadata is what of the metadata of a resource its copies have.
type metadata struct {
	Labels      map[string]string       `json:",omitempty"`
	Annotations map[string]string       `json:",omitempty"`
	Finalizers  []string                `json:",omitempty"`
	Owners      []metav1.OwnerReference `json:",omitempty"`
}

// content is a normalised Secret or ConfigMap.
type content struct {
	Type      corev1.SecretType `json:",omitempty"`
	Data      map[string][]byte `json:",omitempty"`
	Binary    map[string][]byte `json:",omitempty"`
	Immutable bool              `json:",omitempty"`
}

// KindError is a resource that is neither a Secret nor a ConfigMap.
type KindError struct{ APIVersion, Kind string }

// Error names the kind.
func (e *KindError) Error() string {
	return fmt.Sprintf("must be a v1 Secret or ConfigMap, not %q of %q", e.Kind, e.APIVersion)
}

// Read reads spec.resource. It reports what cannot be decoded: see Validate for what is invalid.
func Read(raw []byte) (*Resource, error) {
	object, err := decode(raw)
	if err != nil {
		return nil, err
	}
	r := &Resource{Hash: digest(raw), metadata: metadataOf(object), content: contentOf(object)}
	r.Name = object.GetName()
	r.Kind = object.GetObjectKind().GroupVersionKind()
	compared, err := json.Marshal([]any{r.Kind, r.Name, r.metadata, r.content})
	if err != nil {
		return nil, fmt.Errorf("encode resource: %w", err)
	}
	r.Digest = digest(compared)
	return r, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// decode returns a Secret or a ConfigMap.
func decode(raw []byte) (Object, error) { //nolint:ireturn // whichever kind it is
	var is metav1.TypeMeta
	if err := utiljson.Unmarshal(raw, &is); err != nil {
		return nil, fmt.Errorf("decode resource: %w", err)
	}
	var object Object
	switch {
	case is.APIVersion != "v1":
	case is.Kind == KindSecret:
		object = &corev1.Secret{}
	case is.Kind == KindConfigMap:
		object = &corev1.ConfigMap{}
	}
	if object == nil {
		return nil, &KindError{is.APIVersion, is.Kind}
	}
	if err := utiljson.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("decode resource: %w", err)
	}
	return object, nil
}

func metadataOf(o metav1.Object) metadata {
	m := metadata{Labels: o.GetLabels(), Annotations: maps.Clone(o.GetAnnotations()), Owners: o.GetOwnerReferences()}
	for _, own := range []string{
		v1beta1.ResourceDistributionHashAnnotation, v1beta1.ResourceDistributionFromAnnotation, KeysAnnotation,
	} {
		delete(m.Annotations, own)
	}
	m.Finalizers = slices.Compact(slices.Sorted(slices.Values(o.GetFinalizers())))
	return m
}

func contentOf(o Object) content {
	switch o := o.(type) {
	case *corev1.Secret:
		c := content{Type: o.Type, Data: map[string][]byte{}, Immutable: o.Immutable != nil && *o.Immutable}
		if c.Type == "" {
			c.Type = corev1.SecretTypeOpaque
		}
		maps.Copy(c.Data, o.Data)
		for key, value := range o.StringData {
			c.Data[key] = []byte(value)
		}
		return c
	case *corev1.ConfigMap:
		c := content{Data: map[string][]byte{}, Binary: o.BinaryData, Immutable: o.Immutable != nil && *o.Immutable}
		for key, value := range o.Data {
			c.Data[key] = []byte(value)
		}
		return c
	}
	return content{}
}

// keys returns the value of KeysAnnotation; empty where the resource has neither labels nor annotations.
func (r *Resource) keys() string {
	if len(r.metadata.Labels)+len(r.metadata.Annotations) == 0 {
		return ""
	}
	text, err := json.Marshal(keys{
		slices.Sorted(maps.Keys(r.metadata.Labels)), slices.Sorted(maps.Keys(r.metadata.Annotations)),
	})
	if err != nil {
		return ""
	}
	return string(text)
}

// keys are those of labels and annotations.
type keys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// stale returns the keys that a copy has of an earlier resource.
func (r *Resource) stale(recorded string) keys {
	var had keys
	if len(recorded) > maxKeys || json.Unmarshal([]byte(recorded), &had) != nil {
		return keys{}
	}
	gone := func(all []string, wanted map[string]string) []string {
		return slices.DeleteFunc(all, func(key string) bool { _, is := wanted[key]; return is })
	}
	had.Labels = gone(had.Labels, r.metadata.Labels)
	had.Annotations = slices.DeleteFunc(gone(had.Annotations, r.metadata.Annotations), func(key string) bool {
		return key == v1beta1.ResourceDistributionHashAnnotation || key == v1beta1.ResourceDistributionFromAnnotation ||
			key == KeysAnnotation
	})
	return had
}
