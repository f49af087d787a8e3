package inplace

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// unreadable returns the error of an annotation of a pod that cannot be read. A user must remove the annotation, or
// recreate the pod.
func unreadable(key string, err error) error {
	return fmt.Errorf("metadata.annotations[%s]: %w", key, err)
}

// StateOf reads how far the latest in-place update of a pod has come; nil for a pod that never had one. Nil keys are
// those of OpenKruise.
func StateOf(pod *corev1.Pod, keys *kruise.Keys) (*kruise.InPlaceUpdateState, error) {
	key, text := annotation(pod, keys, (*kruise.Keys).InPlaceStateKey, kruise.InPlaceUpdateStateKeyOld)
	return decode[kruise.InPlaceUpdateState](key, text)
}

// GraceOf reads the change that waits in a pod for the end of its grace period; nil when none does. Nil keys are those
// of OpenKruise.
func GraceOf(pod *corev1.Pod, keys *kruise.Keys) (*kruise.InPlaceUpdateGrace, error) {
	key, text := annotation(pod, keys, (*kruise.Keys).InPlaceGraceKey, kruise.InPlaceUpdateGraceKeyOld)
	return decode[kruise.InPlaceUpdateGrace](key, text)
}

// decode reads the text of an annotation; nil for an empty one.
func decode[T any](key, text string) (*T, error) {
	if text == "" {
		return nil, nil
	}
	value := new(T)
	if err := json.Unmarshal([]byte(text), value); err != nil {
		return nil, unreadable(key, err)
	}
	return value, nil
}

// annotation is the text under a key, or else under an older one, or the oldest one of OpenKruise. An empty text is as
// good as none.
func annotation(pod *corev1.Pod, keys *kruise.Keys, name kruise.Name, oldest string) (from, text string) {
	if key, text, has := keys.Lookup(pod.Annotations, name); has {
		return key, text
	}
	return oldest, pod.Annotations[oldest]
}
