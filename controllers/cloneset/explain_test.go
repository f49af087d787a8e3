package cloneset_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// The notes of a rollout explain what waits for the budget, the grace period or the partition, and why a pod is
// recreated. A complete rollout has none.
func TestExplain(t *testing.T) {
	seen := map[string]string{} // by code
	var last []note.Note
	m := newModel(t, cloneset.Options{
		Explain: func(_ context.Context, _ types.NamespacedName, notes []note.Note) {
			last = notes
			for _, n := range notes {
				seen[n.Code] = strings.TrimSpace(n.Object + " " + n.Text)
			}
		},
	})
	set := m.create("web", 4, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(1))
		s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 1}
	})
	m.eventually(set, settled)
	explained := func(code, words string) {
		t.Helper()
		m.eventually(set, func(*v1beta1.CloneSet, []corev1.Pod) error {
			if !strings.Contains(seen[code], words) {
				return fmt.Errorf("%s: %q, want %q; all: %v", code, seen[code], words, seen)
			}
			return nil
		})
	}
	m.change(set, image("web:2"))
	explained(scale.NoteUpdateLimited, "unavailable: 1, at most: 1")
	explained(inplace.NoteGrace, "the change is written when the grace period ends")
	explained(scale.NotePartition, "1 instance waits")

	m.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
		s.Spec.UpdateStrategy.RollingUpdate.Partition = nil
	})
	explained(workload.NoteNotInPlace, "spec.containers[web].env: ")
	m.eventually(set, settled)
	m.Still()
	if len(last) > 0 {
		t.Errorf("nothing is left to do, but notes: %v", last)
	}
}
