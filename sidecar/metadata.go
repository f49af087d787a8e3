package sidecar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// patchMetadata writes the annotations of a set on the pod.
func (in *injector) patchMetadata(set *Set) error {
	for i, p := range set.object.Spec.PatchPodMetadata {
		for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
			if IsRecord(key) {
				in.note(NoteAnnotationKept, set, "annotation %s is what pods record of sets, and not for sets to write", key)
				continue
			}
			was, ok := in.pod.Annotations[key]
			is, write, err := patchAnnotation(p.PatchPolicy, was, p.Annotations[key])
			switch {
			case err != nil:
				return &FieldError{
					Set:   set.Name(),
					Field: fmt.Sprintf("spec.patchPodMetadata[%d]", i),
					Err:   fmt.Errorf("annotation %s: %w", key, err),
				}
			case write || !ok && isRetain(p.PatchPolicy):
				if ok && was != is {
					in.note(NoteAnnotationReplaced, set, "annotation %s of the pod is overwritten", key)
				}
				annotate(&in.pod.ObjectMeta, key, is)
			case isRetain(p.PatchPolicy) && was != is:
				in.note(NoteAnnotationKept, set, "annotation %s of the pod is retained", key)
			}
		}
	}
	return nil
}

// patchAnnotation returns the new value of an annotation, and whether it replaces an existing one. An unknown policy
// writes nothing.
func patchAnnotation(
	policy appsv1beta1.SidecarSetPatchPolicyType, was, patch string,
) (is string, write bool, err error) {
	switch policy {
	case appsv1beta1.SidecarSetOverwritePatchPolicy:
		return patch, true, nil
	case appsv1beta1.SidecarSetMergePatchJsonPatchPolicy:
		if was == "" || was == patch {
			return patch, true, nil
		}
		is, err := mergeJSON(was, patch)
		return is, true, err
	default:
		return patch, false, nil
	}
}

func isRetain(p appsv1beta1.SidecarSetPatchPolicyType) bool {
	return p == "" || p == appsv1beta1.SidecarSetRetainPatchPolicy
}

// mergeJSON applies a JSON merge patch (RFC 7386). A text that means the result already is returned unchanged.
func mergeJSON(onto, patch string) (string, error) {
	target, err := decodeJSON(onto)
	if err != nil {
		return "", fmt.Errorf("decode the value of the pod: %w", err)
	}
	change, err := decodeJSON(patch)
	if err != nil {
		return "", fmt.Errorf("decode the patch: %w", err)
	}
	was, err := json.Marshal(target)
	if err != nil {
		return "", fmt.Errorf("encode the value of the pod: %w", err)
	}
	is, err := json.Marshal(mergeValue(target, change))
	if err != nil {
		return "", fmt.Errorf("encode the merged value: %w", err)
	}
	if bytes.Equal(was, is) {
		return onto, nil
	}
	return string(is), nil
}

// mergeValue may change target.
func mergeValue(target, patch any) any {
	change, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range change {
		if value == nil {
			delete(object, key)
			continue
		}
		object[key] = mergeValue(object[key], value)
	}
	return object
}

// decodeJSON reads one value, with numbers as they are written.
func decodeJSON(text string) (any, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON value")
	}
	return value, nil
}
