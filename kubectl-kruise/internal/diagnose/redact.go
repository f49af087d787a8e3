package diagnose

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// removed replaces a value that may be a secret.
const removed = "(removed)"

// secretKeys are the fields whose values may hold a secret, wherever they are in an object.
func secretKeys() map[string]bool {
	return map[string]bool{
		"command": true, "args": true, "data": true, "stringData": true, "binaryData": true, "httpHeaders": true,
		"caBundle": true, "token": true, "password": true, "dockerconfigjson": true,
	}
}

// Redact removes from an object what may be a secret: values of environment variables, commands, data of ConfigMaps and
// distributed resources, headers of probes, and copies of the object in annotations.
func Redact(o *unstructured.Unstructured) *unstructured.Unstructured {
	after := o.DeepCopy()
	after.SetManagedFields(nil)
	annotations := after.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	after.SetAnnotations(annotations)
	secret := secretKeys()
	switch o.GetKind() {
	case "ControllerRevision": // whose data is a template
		delete(secret, "data")
	case "CustomResourceDefinition": // whose schemas have such fields, and are in every release
		versions, _, _ := unstructured.NestedSlice(after.Object, "spec", "versions")
		for _, v := range versions {
			if fields, is := v.(map[string]any); is {
				delete(fields, "schema")
			}
		}
		_ = unstructured.SetNestedSlice(after.Object, versions, "spec", "versions")
	}
	redact(after.Object, secret)
	return after
}

// redact removes secrets below a value.
func redact(v any, secret map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			switch {
			case key == "env":
				redactEnv(field)
			case secret[key]:
				v[key] = removed
			default:
				redact(field, secret)
			}
		}
	case []any:
		for _, item := range v {
			redact(item, secret)
		}
	}
}

// redactEnv removes the values of environment variables, and leaves their names and references.
func redactEnv(v any) {
	list, _ := v.([]any)
	for _, item := range list {
		if fields, is := item.(map[string]any); is && fields["value"] != nil {
			fields["value"] = removed
		}
	}
}
