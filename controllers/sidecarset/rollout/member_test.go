package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

func recording(list string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		kruise.SidecarSetInjectedListKey: list,
	}}}
}

func TestSets(t *testing.T) {
	for list, want := range map[string][]string{
		"":                                nil,
		"mesh":                            {"mesh"},
		"mesh,logs,mesh,,a.b":             {"a.b", "logs", "mesh"},
		"Mesh,a_b,-a,a b, a,/," + "mesh":  {"mesh"},
		strings.Repeat("a", 254) + ",b":   {"b"},
		strings.Repeat(",", 50_000) + "b": {"b"},
	} {
		if got := rollout.Sets(recording(list)); !slices.Equal(got, want) {
			t.Errorf("%.40q: want %q, got %q", list, want, got)
		}
	}
}

// TestSetsAreBounded: each name costs an entry of an index, and the owner of a pod writes its annotations.
func TestSetsAreBounded(t *testing.T) {
	var names []string
	for i := range 50_000 {
		names = append(names, fmt.Sprintf("n%05d", i))
	}
	if got := rollout.Sets(recording(strings.Join(names, ","))); len(got) > 256 {
		t.Errorf("a pod records %d sets", len(got))
	}
	if got := rollout.Sets(recording(strings.Join(names[:256], ","))); !slices.Equal(got, names[:256]) {
		t.Errorf("a pod records %d of 256 sets", len(got))
	}
}
