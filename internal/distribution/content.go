package distribution

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkContent validates a normalized object as API servers do, so that a distribution is rejected, and not its copy in
// each namespace.
func checkContent(object metav1.Object, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	size := 0
	check := func(key string, bytes int, at *field.Path) {
		size += bytes
		if texts := validation.IsConfigMapKey(key); len(texts) > 0 {
			faults = append(faults, field.Invalid(at.Key(key), key, strings.Join(texts, ", ")))
		}
	}
	switch o := object.(type) {
	case *corev1.Secret:
		for key, value := range o.Data {
			check(key, len(value), at.Child("data"))
		}
		faults = append(faults, checkType(o, at)...)
	case *corev1.ConfigMap:
		for key, value := range o.Data {
			check(key, len(value), at.Child("data"))
		}
		for key, value := range o.BinaryData {
			check(key, len(value), at.Child("binaryData"))
			if _, both := o.Data[key]; both {
				faults = append(faults, field.Invalid(at.Child("data").Key(key), key, "must not be a key of binaryData as well"))
			}
		}
	}
	if size > corev1.MaxSecretSize {
		faults = append(faults, field.TooLong(at.Child("data"), "", corev1.MaxSecretSize))
	}
	slices.SortStableFunc(faults, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return faults
}

// checkType validates the keys that the type of a Secret requires.
func checkType(s *corev1.Secret, at *field.Path) (faults field.ErrorList) {
	data := at.Child("data")
	required := func(keys ...string) {
		for _, key := range keys {
			if _, ok := s.Data[key]; !ok {
				faults = append(faults, field.Required(data.Key(key), "is required by the type of the Secret"))
			}
		}
	}
	config := func(key string) {
		required(key)
		if value, ok := s.Data[key]; ok && json.Unmarshal(value, &map[string]any{}) != nil {
			faults = append(faults, field.Invalid(data.Key(key), "<secret contents redacted>", "must be a JSON object"))
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		faults = append(faults,
			field.Invalid(at.Child("type"), s.Type, "must not be a token, whose data the API server writes"))
	case corev1.SecretTypeDockercfg:
		config(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		config(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeSSHAuth:
		required(corev1.SSHAuthPrivateKey)
	case corev1.SecretTypeTLS:
		required(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	case corev1.SecretTypeBasicAuth:
		_, user := s.Data[corev1.BasicAuthUsernameKey]
		_, password := s.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			required(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeOpaque, corev1.SecretTypeBootstrapToken:
	}
	return faults
}
