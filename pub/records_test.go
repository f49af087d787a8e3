package pub_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/pub"
)

// updatedInPlace is a pod whose update in place was written and whose container started, at these seconds.
func updatedInPlace(written, started int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		annotation(kruise.InPlaceUpdateStateKey,
			fmt.Sprintf(`{"revision":"r","updateTimestamp":%q,"lastContainerStatuses":{"main":{"imageID":"web@sha256:0"}}}`,
				at(written).Format("2006-01-02T15:04:05Z")))(pod)
		pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: stamp(started)}
	}
}

func TestRecords(t *testing.T) {
	none := map[string]metav1.Time(nil)
	cases := map[string]struct {
		why                string
		disrupted, updated map[string]metav1.Time
		pods               []*corev1.Pod
		kept               [2]int
		current            int32
		requeue            int // seconds, of the earliest that is kept
		notDeleted         []string
	}{
		"12: old deletions": {
			why:        "a pod that outlives its deletion is available again, with an event",
			disrupted:  records(0, 2, -21),
			updated:    none,
			pods:       pods(4),
			kept:       [2]int{0, 0},
			current:    4,
			notDeleted: []string{"web-0", "web-1"},
		},
		"recorded twice": {
			why:       "a pod counts once",
			disrupted: records(0, 1, 0),
			updated:   records(0, 1, 0),
			pods:      pods(4),
			kept:      [2]int{1, 1},
			current:   3,
			requeue:   10,
		},
		"updated before": {
			why:       "an older update says nothing",
			disrupted: none,
			updated:   records(0, 1, -3),
			pods:      pods(2, updatedInPlace(-4, -1)),
			kept:      [2]int{0, 1},
			current:   1,
			requeue:   7,
		},
		"deleted, and updated": {
			why:       "an update does not end the record of a deletion",
			disrupted: records(0, 1, -3),
			updated:   none,
			pods:      pods(2, updatedInPlace(-3, -1)),
			kept:      [2]int{1, 0},
			current:   1,
			requeue:   17,
		},
		"a clock far ahead":      {"no record holds for hours", records(0, 1, 3600), none, pods(2), [2]int{0, 0}, 2, 0, nil},
		"a clock a little ahead": {"a replica may be ahead", records(0, 1, 60), none, pods(2), [2]int{1, 0}, 1, 80, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			budget := newBudget(maxUnavailable("30%"), recorded(c.disrupted, c.updated))
			r := pub.Recount(pub.Input{
				Budget: budget, Counts: counts(c.pods), Total: deployments(int32(len(c.pods))), Now: at(0),
			})
			if got := [2]int{len(r.Status.DisruptedPods), len(r.Status.UnavailablePods)}; got != c.kept {
				t.Errorf("%s: %v records are kept, want %v", c.why, got, c.kept)
			}
			if r.Status.CurrentAvailable != c.current {
				t.Errorf("%s: %d are available, want %d", c.why, r.Status.CurrentAvailable, c.current)
			}
			if got := int(r.RequeueAfter.Seconds()); got != c.requeue {
				t.Errorf("%s: looks again after %v, want %d s", c.why, r.RequeueAfter, c.requeue)
			}
			if diff := cmp.Diff(c.notDeleted, r.NotDeleted); diff != "" {
				t.Errorf("%s: not deleted (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
