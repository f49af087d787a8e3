package standin

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// world has one pod as the API server stores it, and the nodes that play its life.
type world struct {
	t     *testing.T
	nodes *Nodes
	clock time.Time
	pod   *corev1.Pod
}

// sync has the nodes act until nothing is due, and returns what they wrote.
func (w *world) sync() []string {
	w.t.Helper()
	var writes []string
	for range 10 {
		stale := w.pod.DeepCopy()
		s := w.nodes.next(w.pod)
		w.apply(s)
		switch again := w.nodes.next(stale); {
		case again.bind != "", again.status != nil, s.remove && again.remove:
			w.t.Errorf("the cache lags, and a write is repeated: %+v", again)
		case again.remove:
			return append(writes, w.describe(), "delete")
		}
		switch {
		case s.remove:
			return append(writes, "delete")
		case s.bind != "":
			writes = append(writes, "bind to "+s.bind)
		case s.status != nil:
			writes = append(writes, w.describe())
		default:
			if s.after > 0 {
				writes = append(writes, fmt.Sprintf("wait %s", s.after))
			}
			return writes
		}
	}
	w.t.Fatalf("there is no end of writes: %v", writes)
	return nil
}

func (w *world) apply(s step) {
	w.t.Helper()
	if s.bind != "" {
		w.pod.Spec.NodeName = s.bind
	}
	if s.status == nil {
		return
	}
	patch, err := json.Marshal(map[string]any{"status": s.status})
	if err != nil {
		w.t.Fatal(err)
	}
	stored, err := json.Marshal(w.pod)
	if err != nil {
		w.t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(stored, patch, corev1.Pod{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pod = &corev1.Pod{}
	if err := json.Unmarshal(merged, w.pod); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) describe() string {
	c := w.pod.Status.ContainerStatuses[0]
	state := "waiting"
	if c.State.Running != nil {
		state = "running"
	} else if c.State.Terminated != nil {
		state = "terminated"
	}
	return fmt.Sprintf("%s %s %s restarts=%d ready=%t",
		w.pod.Status.Phase, c.Image, state, c.RestartCount, isTrue(w.pod, corev1.PodReady))
}

func (w *world) pass(d time.Duration) { w.clock = w.clock.Add(d) }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	w.nodes = &Nodes{Names: []string{"a", "b"}, Start: time.Second, Now: func() time.Time { return w.clock }}
	w.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", UID: "1"}}
	w.pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
	return w
}

// running is a world whose pod runs.
func running(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.sync()
	w.pass(time.Second)
	w.sync()
	return w
}

func TestNodes(t *testing.T) {
	const gate corev1.PodConditionType = "example.com/Gate"
	cases := map[string]struct {
		play func(w *world) []string
		want []string
	}{
		"a new pod is bound, its container is created, and runs after the time it takes to start": {
			func(w *world) []string {
				w = newWorld(w.t)
				begin := w.sync()
				w.pass(time.Second)
				return append(begin, w.sync()...)
			},
			[]string{
				"bind to a", "Pending web:1 waiting restarts=0 ready=false", "wait 1s",
				"Running web:1 running restarts=0 ready=true",
			},
		},
		"a new image ends the container at once, and the image runs after the time it takes to start": {
			func(w *world) []string {
				w.pod.Spec.Containers[0].Image = "web:2"
				begin := w.sync()
				w.pass(time.Second)
				return append(begin, w.sync()...)
			},
			[]string{
				"Running web:1 terminated restarts=0 ready=false", "wait 1s",
				"Running web:2 running restarts=1 ready=true",
			},
		},
		"a readiness gate decides about Ready": {
			func(w *world) []string {
				w.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
				without := w.sync()
				w.pod.Status.Conditions = append(w.pod.Status.Conditions, corev1.PodCondition{
					Type: gate, Status: corev1.ConditionTrue,
				})
				return append(without, w.sync()...)
			},
			[]string{"Running web:1 running restarts=0 ready=false", "Running web:1 running restarts=0 ready=true"},
		},
		"a deleted pod runs for its grace period, ends, and goes": {
			func(w *world) []string {
				w.pod.DeletionTimestamp = &metav1.Time{Time: w.clock.Add(2 * time.Second)}
				begin := w.sync()
				w.pass(2 * time.Second)
				return append(begin, w.sync()...)
			},
			[]string{"wait 2s", "Succeeded web:1 terminated restarts=0 ready=false", "delete"},
		},
		"a write whose outcome is unknown is repeated, and the container runs on": {
			func(w *world) []string {
				w.nodes.doubt(client.ObjectKeyFromObject(w.pod))
				return w.sync()
			},
			[]string{"Running web:1 running restarts=0 ready=true"},
		},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			w := running(t)
			if diff := cmp.Diff(c.want, c.play(w)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
