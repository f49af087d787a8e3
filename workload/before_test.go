package workload_test

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// What precedes the deletion of a pod is written first, and the pod stays where that fails.
func TestBefore(t *testing.T) {
	cases := map[string]struct {
		finished bool
		held     bool
		fails    string
		want     []string
		failures int
	}{
		"in order: the pod is deleted last": {want: []string{"Prepare data-c", "Prepare logs-c", "Delete c"}},
		"refused: the pod stays":            {false, false, "logs-c", []string{"Prepare data-c", "Prepare logs-c"}, 1},
		"finished: the pod is deleted last": {
			finished: true, want: []string{"Prepare data-c", "Prepare logs-c", "Delete c"},
		},
		"finished, failed: the pod stays": {true, false, "data-c", []string{"Prepare data-c"}, 1},
		"finished, held: another client may delete the pod": {
			finished: true, held: true,
			want: []string{"Prepare data-c", "Prepare logs-c", "Move c"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := three(t)
			if c.finished {
				s.pods["c"].Status.Phase = corev1.PodFailed
			}
			in := s.input()
			in.Scale.Slots, in.Scale.Limits.Replicas = []string{"a", "b"}, 0
			in.Update = in.Current
			if c.held {
				s.pods["c"].Finalizers = []string{"example.com/data"}
				in.Scale.Hooks = &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{FinalizersHandler: s.pods["c"].Finalizers}}
			}
			in.Before = func(pod *corev1.Pod) []write.Write {
				if pod.Name != "c" {
					return nil
				}
				var all []write.Write
				for _, claim := range []string{"data-c", "logs-c"} {
					all = append(all, write.Write{
						Verb:   write.Patch,
						Object: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}},
						Body:   write.Bytes("[]"),
					})
				}
				return all
			}
			s.fails = func(w *workload.Write) error {
				if w.Object.GetName() == c.fails {
					return refused()
				}
				return nil
			}
			for _, claim := range []string{"data-c", "logs-c"} {
				s.pods[claim] = &corev1.Pod{} // stands for the claim, which the server patches
			}
			pass := s.run(in)
			if !slices.Equal(s.sent, c.want) || len(pass.Failures()) != c.failures {
				t.Errorf("sent %v, want %v, failures %v", s.sent, c.want, pass.Failures())
			}
		})
	}
}

// Another client may delete a pod at any time, so that what precedes a deletion is written for pods that stay, and for
// those that terminate.
func TestBeforeOfAll(t *testing.T) {
	s := three(t)
	s.pods["b"].DeletionTimestamp = &metav1.Time{Time: noon}
	in := s.input()
	in.Update = in.Current
	in.Before = func(pod *corev1.Pod) []write.Write {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-" + pod.Name}}
		s.pods[claim.Name] = &corev1.Pod{} // stands for the claim, which the server patches
		return []write.Write{{Verb: write.Patch, Object: claim, Body: write.Bytes("[]")}}
	}
	in.Scale.Slots, in.Scale.Limits.Replicas, in.Scale.InOrder = []string{"a"}, 0, true
	pass := s.run(in)
	slices.Sort(s.sent)
	if want := []string{"Delete c", "Prepare data-a", "Prepare data-b", "Prepare data-c"}; !slices.Equal(s.sent, want) {
		t.Errorf("sent %v, want %v, failures %v", s.sent, want, pass.Failures())
	}
}

// A slot that has to wait, as for the name of a claim, does not keep the others from being updated.
func TestDeferredSlot(t *testing.T) {
	for name, c := range map[string]struct {
		inOrder bool
		want    []string
	}{
		"parallel: the budget has room for another pod":            {false, []string{"Unready c", "Update c"}},
		"in order: no update comes before all slots are available": {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := three(t)
			in := s.input()
			in.Scale.Slots, in.Scale.Limits.Replicas, in.Scale.Limits.MaxUnavailable = []string{"a", "b", "c", "d"}, 0, 2
			in.Scale.InOrder = c.inOrder
			in.Build = func(creations []workload.Creation) ([][]write.Object, error) {
				return make([][]write.Object, len(creations)), nil
			}
			if s.run(in); !slices.Equal(s.sent, c.want) {
				t.Errorf("sent %v, want %v", s.sent, c.want)
			}
		})
	}
}

// A deletion whose answer is lost may have been made: no update begins beside it in the same pass, which would cross
// the budget.
func TestDoubtedDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"lost: the pod may be gone":                             {errors.New("connection reset"), []string{"Delete c"}},
		"refused: the pod is there, and the others are updated": {refused(), []string{"Delete c", "Unready b", "Update b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := three(t)
			in := s.input()
			in.Scale.Slots, in.Scale.Limits.Replicas = []string{"a", "b", "c"}, 0
			in.Instances[2].MarkedForDeletion = true
			in.Instances[2].Pods[0].Labels[kruise.PodRevisionLabelKey] = "web-2"
			s.fails = func(w *workload.Write) error {
				if w.Action == workload.ActionDelete {
					return c.err
				}
				return nil
			}
			if s.run(in); !slices.Equal(s.sent, c.want) {
				t.Errorf("sent %v, want %v", s.sent, c.want)
			}
		})
	}
}
