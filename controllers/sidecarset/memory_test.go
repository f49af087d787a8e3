package sidecarset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/ledger"
)

// Writes of pods in a namespace that has no pods of the set any more are forgotten, those in other namespaces are not.
func TestWritesOfGoneNamespaces(t *testing.T) {
	now := func() time.Time { return time.Unix(1_800_000_000, 0) }
	pod := func(namespace, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: types.UID(namespace), ResourceVersion: version}}
	}
	s := &state{pods: ledger.New[*corev1.Pod](nil, now)}
	s.patched(pod("kept", "2"))
	s.patched(pod("gone", "2"))
	s.keep(map[string][]*corev1.Pod{"kept": {pod("kept", "1")}})
	for namespace, want := range map[string]string{"kept": "2", "gone": "1"} {
		all, _, err := s.pods.Overlay(t.Context(), types.NamespacedName{Namespace: namespace}, []*corev1.Pod{pod(namespace, "1")})
		if err != nil || len(all) != 1 || all[0].ResourceVersion != want {
			t.Errorf("%s: got %v, %v, want version %s", namespace, all, err, want)
		}
	}
	if len(s.namespaces) != 1 {
		t.Errorf("namespaces %v, want one", s.namespaces)
	}
}
