package compat

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/pub"
)

// TestRecordedAnnotationsAreKept decodes the JSON that a running reference wrote on pods, and encodes it again
// to the same bytes.
func TestRecordedAnnotationsAreKept(t *testing.T) {
	again := map[string]func(string) (string, error){
		pub.InPlaceUpdateStateKey:           encodeAgain[pub.InPlaceUpdateState],
		pub.InPlaceUpdateGraceKey:           encodeAgain[pub.InPlaceUpdateGrace],
		pub.RuntimeContainerMetaKey:         encodeAgain[pub.RuntimeContainerMetaSet],
		pub.SidecarSetHashKey:               encodeAgain[map[string]pub.SidecarSetInjected],
		pub.SidecarSetHashWithoutImageKey:   encodeAgain[map[string]pub.SidecarSetInjected],
		pub.SidecarSetInPlaceUpdateStateKey: encodeAgain[map[string]pub.InPlaceUpdateState],
		pub.MatchedWorkloadSpreadKey:        encodeAgain[pub.MatchedWorkloadSpread],
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
		if !seen[key] && key != pub.InPlaceUpdateGraceKey { // no pod was recorded within its grace period
			t.Errorf("no recorded pod has %s", key)
		}
	}
}

func conditionKept(t *testing.T, pod corev1.Pod) {
	t.Helper()
	for _, c := range pod.Status.Conditions {
		if c.Type != pub.KruisePodReadyConditionType || c.Message == "" {
			continue
		}
		if got, err := encodeAgain[[]pub.NotReadyEntry](c.Message); err != nil || got != c.Message {
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
