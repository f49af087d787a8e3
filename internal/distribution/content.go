package distribution

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSecret validates a Secret as API servers do, so that a distribution is rejected, and not its copy in each
// namespace.
func checkSecret(s *corev1.Secret, at *field.Path) field.ErrorList {
	is := contentOf(s)
	faults := checkSize(at, is)
	for key := range is.Data {
		faults = append(faults, checkKey(key, at.Child("data"))...)
	}
	sortFaults(faults)
	return append(faults, checkType(is, at)...)
}

func checkConfigMap(m *corev1.ConfigMap, at *field.Path) field.ErrorList {
	is := contentOf(m)
	faults := checkSize(at, is)
	for key := range is.Data {
		faults = append(faults, checkKey(key, at.Child("data"))...)
		if _, both := is.Binary[key]; both {
			faults = append(faults, field.Invalid(at.Child("data").Key(key), key, "must not be a key of binaryData as well"))
		}
	}
	for key := range is.Binary {
		faults = append(faults, checkKey(key, at.Child("binaryData"))...)
	}
	sortFaults(faults)
	return faults
}

// sortFaults makes the order that of the paths, not that of a map.
func sortFaults(faults field.ErrorList) {
	slices.SortFunc(faults, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
}

func checkSize(at *field.Path, is content) field.ErrorList {
	size := 0
	for _, all := range []map[string][]byte{is.Data, is.Binary} {
		for _, value := range all {
			size += len(value)
		}
	}
	if size > corev1.MaxSecretSize {
		return field.ErrorList{field.TooLong(at.Child("data"), "", corev1.MaxSecretSize)}
	}
	return nil
}

func checkKey(key string, at *field.Path) field.ErrorList {
	texts := validation.IsConfigMapKey(key)
	if len(texts) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at.Key(key), key, strings.Join(texts, ", "))}
}

// checkType validates the keys that the type of a Secret requires.
func checkType(is content, at *field.Path) field.ErrorList {
	data := at.Child("data")
	required := func(keys ...string) (faults field.ErrorList) {
		for _, key := range keys {
			if _, ok := is.Data[key]; !ok {
				faults = append(faults, field.Required(data.Key(key), "is required by the type of the Secret"))
			}
		}
		return faults
	}
	config := func(key string) field.ErrorList {
		if faults := required(key); len(faults) > 0 {
			return faults
		}
		if json.Unmarshal(is.Data[key], &map[string]any{}) != nil {
			return field.ErrorList{field.Invalid(data.Key(key), "<secret contents redacted>", "must be a JSON object")}
		}
		return nil
	}
	switch is.Type {
	case corev1.SecretTypeServiceAccountToken:
		return field.ErrorList{
			field.Invalid(at.Child("type"), is.Type, "must not be a token, whose data the API server writes"),
		}
	case corev1.SecretTypeDockercfg:
		return config(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		return config(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeSSHAuth:
		return required(corev1.SSHAuthPrivateKey)
	case corev1.SecretTypeTLS:
		return required(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	case corev1.SecretTypeBasicAuth:
		_, user := is.Data[corev1.BasicAuthUsernameKey]
		_, password := is.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			return required(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeOpaque, corev1.SecretTypeBootstrapToken:
	}
	return nil
}
