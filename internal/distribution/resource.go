package distribution

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// Kind is that of distributions.
	Kind = "ResourceDistribution"
	// RepairPause is the least time between two restores of a copy that another writer changes.
	RepairPause = 2 * time.Second
)

// KindError is a resource that is neither a Secret nor a ConfigMap.
type KindError struct{ APIVersion, Kind string }

// Error names the kind.
func (e *KindError) Error() string {
	return fmt.Sprintf("must be a v1 Secret or ConfigMap, not %q of %q", e.Kind, e.APIVersion)
}

// Read returns spec.resource as an API server stores it, without a namespace. It reports what cannot be decoded: see
// Validate for what is invalid.
func Read(raw []byte) (*unstructured.Unstructured, error) {
	object, err := decode(raw)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert resource: %w", err)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// decode returns a Secret or a ConfigMap. It is normalized: data alone has the content of a Secret, its type is set,
// and false is absent.
func decode(raw []byte) (metav1.Object, error) {
	var kind metav1.TypeMeta
	if err := utiljson.Unmarshal(raw, &kind); err != nil {
		return nil, fmt.Errorf("decode resource: %w", err)
	}
	secret, config := &corev1.Secret{}, &corev1.ConfigMap{}
	var object metav1.Object
	switch {
	case kind.APIVersion == "v1" && kind.Kind == "Secret":
		object = secret
	case kind.APIVersion == "v1" && kind.Kind == "ConfigMap":
		object = config
	default:
		return nil, &KindError{kind.APIVersion, kind.Kind}
	}
	if err := utiljson.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("decode resource: %w", err)
	}
	object.SetNamespace("")
	secret.Type = cmp.Or(secret.Type, corev1.SecretTypeOpaque)
	secret.Data, secret.Immutable = withoutNil(secret.Data), withoutFalse(secret.Immutable)
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	config.BinaryData, config.Immutable = withoutNil(config.BinaryData), withoutFalse(config.Immutable)
	return object, nil
}

func withoutFalse(b *bool) *bool {
	if b != nil && !*b {
		return nil
	}
	return b
}

// withoutNil has empty values where the JSON has null.
func withoutNil(data map[string][]byte) map[string][]byte {
	all := make(map[string][]byte, len(data))
	for key, value := range data {
		all[key] = append([]byte{}, value...)
	}
	return all
}
