package cloneset_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
)

// TestAsk: a rollout, in place or not, begins no update that its budget refuses, asks again without an error, and is
// complete once the budget has room.
func TestAsk(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.CloneSet){
		"in place": inPlace,
		"recreate": func(s *v1beta1.CloneSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			room, questions, most := 0, 0, 0
			var refused []note.Note
			m := newModel(t, cloneset.Options{
				Ask: func(_ context.Context, pods []*corev1.Pod) error {
					questions++
					most = max(most, len(pods))
					if len(pods) <= room {
						return nil
					}
					return &workload.RefusedError{
						Admitted: room, Reason: "PodUnavailableBudget web: pub unavailable allowed is negative",
					}
				},
				Explain: func(_ context.Context, _ types.NamespacedName, notes []note.Note) {
					for _, n := range notes {
						if n.Code == workload.NoteRefused {
							refused = append(refused, n)
						}
					}
				},
			})
			set := m.create("web", 4, func(s *v1beta1.CloneSet) {
				change(s)
				s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(4))
			})
			m.eventually(set, settled)
			if questions > 0 {
				t.Errorf("%d questions without an update", questions)
			}
			m.change(set, image("web:2"))
			m.stays(set, func(s *v1beta1.CloneSet, _ []corev1.Pod) error {
				failed := slices.ContainsFunc(s.Status.Conditions, func(c v1beta1.CloneSetCondition) bool {
					return c.Type == v1beta1.CloneSetConditionFailedUpdate && c.Status == corev1.ConditionTrue
				})
				if s.Status.UpdatedReplicas > 0 || len(refused) == 0 || failed {
					return fmt.Errorf("refused, yet %d updated; notes %v; status %+v", s.Status.UpdatedReplicas, refused, s.Status)
				}
				return nil
			})
			if most != 4 {
				t.Errorf("a question has %d pods, want all whose updates begin", most)
			}
			room = 1
			m.eventually(set, settled)
			if err := images(map[string]int{"web:2": 4})(set, m.pods(set)); err != nil {
				t.Error(err)
			}
		})
	}
}
