package podwrites

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Writes replace what the cache shows. Those of pods in a namespace that has no pods any more are forgotten, those in
// other namespaces are not.
func TestOverlay(t *testing.T) {
	pod := func(namespace, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web", UID: types.UID(namespace), ResourceVersion: version,
		}}
	}
	w := New(nil, func() time.Time { return time.Unix(1_800_000_000, 0) })
	w.patched(pod("kept", "2"))
	w.patched(pod("gone", "2"))
	overlay := func(want map[string]string) {
		t.Helper()
		pods := map[string][]*corev1.Pod{}
		for namespace := range want {
			pods[namespace] = []*corev1.Pod{pod(namespace, "1")}
		}
		if err := w.Overlay(t.Context(), pods); err != nil {
			t.Fatal(err)
		}
		for namespace, version := range want {
			if got := pods[namespace]; len(got) != 1 || got[0].ResourceVersion != version {
				t.Errorf("%s: got %v, want one pod at version %s", namespace, got, version)
			}
		}
	}
	overlay(map[string]string{"kept": "2", "gone": "2", "other": "1"})
	overlay(map[string]string{"kept": "2"})
	if len(w.namespaces) != 1 {
		t.Errorf("namespaces %v, want one", w.namespaces)
	}
	overlay(map[string]string{"kept": "2", "gone": "1"})
}
