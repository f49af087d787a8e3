//go:build envtest

package cloneset_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// told collects the notes of a set called web.
type told struct {
	mu   sync.Mutex
	all  map[string]string // by code
	last []note.Note
}

func (o *told) explain(_ context.Context, set types.NamespacedName, notes []note.Note) {
	if set.Name != "web" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = notes
	for _, n := range notes {
		o.all[n.Code] = strings.TrimSpace(n.Object + " " + n.Text)
	}
}

// A rollout tells why it is where it is: what waits for the budget, the node, the partition or the user's own say, and why a
// pod cannot be kept.
func TestExplain(t *testing.T) {
	o := &told{all: map[string]string{}}
	asked := 0 // from the one worker that has the set
	b := start(t, cloneset.Options{Explain: o.explain, MayUpdate: func(*corev1.Pod) (bool, string) {
		asked++
		return asked > 1, "a drill is on"
	}})
	set := b.create("web", 4, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(1))
		s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &pub.InPlaceUpdateStrategy{GracePeriodSeconds: 1}
	})
	b.eventually(set, settled)
	heard := func(code, words string) {
		t.Helper()
		b.eventually(set, func(*v1beta1.CloneSet, []corev1.Pod) error {
			o.mu.Lock()
			defer o.mu.Unlock()
			if !strings.Contains(o.all[code], words) {
				return fmt.Errorf("%s: %q, want %q; all: %v", code, o.all[code], words, o.all)
			}
			return nil
		})
	}
	b.change(set, image("web:2"))
	heard(workload.NoteRefused, "a drill is on")
	heard(scale.NoteUpdateLimited, "unavailable: 1, at most: 1")
	heard(inplace.NoteGrace, "the change is written when the grace period ends")
	heard(scale.NotePartition, "1 instance waits")

	b.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
		s.Spec.UpdateStrategy.RollingUpdate.Partition = nil
	})
	heard(workload.NoteNotInPlace, "spec.containers[web].env: ")
	b.eventually(set, settled)
	b.still()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.last) > 0 {
		t.Errorf("nothing is left to do, and yet: %v", o.last)
	}
}
