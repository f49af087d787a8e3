package compat

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// TestRecordedAnnotationsAreKept decodes the JSON that a running reference wrote on pods, and encodes it again
// to the same bytes.
func TestRecordedAnnotationsAreKept(t *testing.T) {
	again := map[string]func(string) (string, error){
		kruise.InPlaceUpdateStateKey:           encodeAgain[kruise.InPlaceUpdateState],
		kruise.InPlaceUpdateGraceKey:           encodeAgain[kruise.InPlaceUpdateGrace],
		kruise.RuntimeContainerMetaKey:         encodeAgain[kruise.RuntimeContainerMetaSet],
		kruise.SidecarSetHashKey:               encodeAgain[map[string]kruise.SidecarSetInjected],
		kruise.SidecarSetHashWithoutImageKey:   encodeAgain[map[string]kruise.SidecarSetInjected],
		kruise.SidecarSetInPlaceUpdateStateKey: encodeAgain[map[string]kruise.InPlaceUpdateState],
		kruise.MatchedWorkloadSpreadKey:        encodeAgain[kruise.MatchedWorkloadSpread],
	}
	seen := map[string]bool{}
	for file, objects := range recorded(t, "pods.yaml") {
		for _, raw := range objects {
			pod := corev1.Pod{}
			if err := json.Unmarshal(raw, &pod); err != nil {
				t.Fatal(err)
			}
			for key, value := range pod.Annotations {
				encode, ok := again[key]
				if !ok {
					continue
				}
				seen[key] = true
				got, err := encode(value)
				if err != nil || got != value {
					t.Errorf("%s, pod %s, %s: %v\nrecorded %s\nours     %s", file, pod.Name, key, err, value, got)
				}
			}
			conditionKept(t, pod)
		}
	}
	for key := range again {
		if !seen[key] && key != kruise.InPlaceUpdateGraceKey { // no pod was recorded within its grace period
			t.Errorf("no recorded pod has %s", key)
		}
	}
}

func conditionKept(t *testing.T, pod corev1.Pod) {
	t.Helper()
	for _, c := range pod.Status.Conditions {
		if c.Type != kruise.KruisePodReadyConditionType || c.Message == "" {
			continue
		}
		if got, err := encodeAgain[[]kruise.NotReadyEntry](c.Message); err != nil || got != c.Message {
			t.Errorf("pod %s, %s: %v\nrecorded %s\nours     %s", pod.Name, c.Type, err, c.Message, got)
		}
	}
}

func encodeAgain[T any](text string) (string, error) {
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return "", err
	}
	data, err := json.Marshal(v)
	return string(data), err
}
