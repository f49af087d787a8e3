package podstate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/note"
)

func TestRecords(t *testing.T) {
	nodes := []*corev1.Node{newNode("n1", "a"), newNode("n2", "b")}
	bare := newNode("n3", "c")
	delete(bare.Labels, zone)
	withAddress := func(p *corev1.Pod, address string) *corev1.Pod {
		p.Annotations = map[string]string{"address": address}
		return p
	}
	reserved, err := ordinals.Parse([]intstr.IntOrString{intstr.FromInt32(1)})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		why  string
		in   podstate.Input
		edit func(*podstate.Input)
		want map[string]string
	}{
		"first": {
			why:  "ready pods are recorded",
			in:   input(newState(), 2, nodes, ready("db-0", "n1"), ready("db-1", "n2")),
			want: map[string]string{"db-0": "n1: a n1", "db-1": "n2: b n2"},
		},
		"not ready": {
			why: "a pod that is not ready, ended or terminates changes no record",
			in: input(newState(recorded("db-0", "n1", "a")), 3, nodes, unready("db-0", "n2"),
				ended("db-1", "n2"), leaving("db-2", "n2")),
			want: map[string]string{"db-0": "n1: a n1"},
		},
		"elsewhere": {
			why:  "a pod that is ready on another node is recorded again",
			in:   input(newState(recorded("db-0", "n1", "a")), 1, nodes, ready("db-0", "n2")),
			want: map[string]string{"db-0": "n2: b n2"},
		},
		"complete": {
			why:  "a record with all keys stays, whatever the node says now",
			in:   input(newState(recorded("db-0", "n1", "b")), 1, nodes, ready("db-0", "n1")),
			want: map[string]string{"db-0": "n1: b n1"},
		},
		"a changed zone": {
			why:  "a record whose zone is gone is made again",
			in:   input(newState(recorded("db-0", "n1", "z")), 1, nodes, ready("db-0", "n1")),
			want: map[string]string{"db-0": "n1: a n1"},
		},
		"more keys": {
			why: "a record without a wanted key is made again",
			in: input(newState(recorded("db-0", "n1", "a"), annotations("address")), 1, nodes,
				withAddress(ready("db-0", "n1"), "10.0.0.1")),
			want: map[string]string{"db-0": "n1: a n1 address=10.0.0.1"},
		},
		"fewer keys": {
			why:  "a key that is no longer wanted is dropped",
			in:   input(newState(recorded("db-0", "n1", "a"), requiring(host)), 1, nodes, ready("db-0", "n1")),
			want: map[string]string{"db-0": "n1: n1"},
		},
		"a bare node": {
			why:  "what the node lacks is not recorded",
			in:   input(newState(), 1, append(nodes, bare), ready("db-0", "n3")),
			want: map[string]string{"db-0": "n3: n3"},
		},
		"no node": {
			why:  "a pod on a node that is gone keeps its record",
			in:   input(newState(recorded("db-0", "n1", "a")), 1, nodes, ready("db-0", "gone")),
			want: map[string]string{"db-0": "n1: a n1"},
		},
		"scaled": {
			why: "a record outside of the ordinals stays while its pod exists",
			in: input(newState(recorded("db-7", "n1", "a"), recorded("db-8", "n1", "a"), recorded("db-9", "n1", "a")), 8,
				nodes, ready("db-8", "n1")),
			want: map[string]string{"db-7": "n1: a n1", "db-8": "n1: a n1"},
		},
		"scaled to none": {
			why: "the records of pods that run stay",
			in: input(newState(recorded("db-0", "n1", "a"), recorded("db-1", "n1", "a")), 0, nodes,
				ready("db-0", "n1"), leaving("db-1", "n1")),
			want: map[string]string{"db-0": "n1: a n1"},
		},
		"kept": {
			why: "WhenDeleted keeps all",
			in: input(newState(recorded("db-9", "n1", "a"), func(s *podstate.State) {
				s.Spec.PersistentPodStateRetentionPolicy = "WhenDeleted"
			}), 1, nodes),
			want: map[string]string{"db-9": "n1: a n1"},
		},
		"an odd policy": {
			why: "it acts as WhenScaled",
			in: input(newState(recorded("db-9", "n1", "a"), func(s *podstate.State) {
				s.Spec.PersistentPodStateRetentionPolicy = "x"
			}), 1, nodes),
			want: map[string]string{},
		},
		"unknown replicas": {
			why:  "nothing is dropped",
			in:   input(newState(recorded("db-9", "n1", "a")), 0, nodes),
			edit: func(in *podstate.Input) { in.Workload.Unknown = true },
			want: map[string]string{"db-9": "n1: a n1"},
		},
		"no ordinal": {
			why:  "the record stays",
			in:   input(newState(recorded("db-x", "n1", "a")), 1, nodes),
			want: map[string]string{"db-x": "n1: a n1"},
		},
		"gone": {
			why:  "all is dropped",
			in:   input(newState(recorded("db-0", "n1", "a")), 1, nodes, ready("db-0", "n1")),
			edit: func(in *podstate.Input) { in.Workload.Gone = true },
			want: map[string]string{},
		},
		"reserved": {
			why: "ordinals 0, 2 and 3 are wanted, and 4 still runs",
			in: input(newState(recorded("db-0", "n1", "a"), recorded("db-1", "n1", "a"), recorded("db-2", "n1", "a"),
				recorded("db-3", "n1", "a"), recorded("db-4", "n1", "a")), 3, nodes, ready("db-4", "n1")),
			edit: func(in *podstate.Input) { in.Workload.Ordinals.Reserved = reserved },
			want: map[string]string{"db-0": "n1: a n1", "db-2": "n1: a n1", "db-3": "n1: a n1", "db-4": "n1: a n1"},
		},
		"from a start": {
			why:  "ordinals begin at 5",
			in:   input(newState(recorded("db-0", "n1", "a"), recorded("db-5", "n1", "a")), 1, nodes),
			edit: func(in *podstate.Input) { in.Workload.Ordinals.Start = 5 },
			want: map[string]string{"db-5": "n1: a n1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.edit != nil {
				c.edit(&c.in)
			}
			before := c.in.State.DeepCopy()
			pass := podstate.Plan(c.in)
			if diff := cmp.Diff(c.want, places(pass.Status.PodStates)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if diff := cmp.Diff(before, c.in.State); diff != "" {
				t.Errorf("the input changed (-was +is):\n%s", diff)
			}
			if pass.Status.ObservedGeneration != 2 || pass.Status.Conditions != nil || len(pass.Stuck) > 0 {
				t.Errorf("%+v", pass)
			}
		})
	}
}

// A node that is gone: the condition, the release after a time, and the pods that wait.
func TestMissing(t *testing.T) {
	nodes := []*corev1.Node{newNode("n2", "b"), newNode("n3", "c")}
	release := annotated(v1beta1.AnnotationReleaseMissingTopologyAfter, "5m")
	since := func(ago time.Duration) func(*podstate.State) {
		return func(s *podstate.State) {
			r := s.Status.PodStates["db-0"]
			r.MissingSince = &metav1.Time{Time: now.Add(-ago)}
			s.Status.PodStates["db-0"] = r
			s.Status.Conditions = []metav1.Condition{{
				Type:               "TopologyAvailable",
				Status:             "False",
				Reason:             "NodesMissing",
				Message:            "No node has the required labels of db-0 (n1)",
				LastTransitionTime: metav1.Time{Time: now.Add(-ago)},
				ObservedGeneration: 2,
			}}
		}
	}
	releasedNow := func(s *podstate.State) {
		s.Status.PodStates = map[string]v1beta1.PodState{"db-0": {
			NodeName: "n1", ReleasedAt: &metav1.Time{Time: now.Add(-time.Second)},
		}}
	}
	for name, c := range map[string]struct {
		why       string
		state     *podstate.State
		nodes     []*corev1.Node
		pods      []*corev1.Pod
		want      string
		condition string
		after     time.Duration
		stuck     string
		codes     string
	}{
		"another node": {
			why: "a node of the zone is enough", state: newState(recorded("db-0", "n1", "b")), want: "n1: b n1",
		},
		"the zone is gone": {
			why:       "the pod waits for ever",
			state:     newState(recorded("db-0", "n1", "a")),
			want:      "n1: a n1 missing 0s",
			condition: "False NodesMissing: No node has the required labels of db-0 (n1)",
			codes:     "NodesMissing",
		},
		"only preferred": {
			why:   "no label is required",
			state: newState(recorded("db-0", "n1", "a"), func(s *podstate.State) { s.Spec.RequiredPersistentTopology = nil }),
			want:  "n1: a n1",
		},
		"still missing": {
			why:       "the time stays",
			state:     newState(recorded("db-0", "n1", "a"), since(time.Hour)),
			want:      "n1: a n1 missing -1h0m0s",
			condition: "False NodesMissing: No node has the required labels of db-0 (n1)",
			codes:     "NodesMissing",
		},
		"back": {
			why:       "the condition ends",
			state:     newState(recorded("db-0", "n1", "b"), since(time.Hour)),
			want:      "n1: b n1",
			condition: "True NodesFound: Nodes have the required labels of all pods",
		},
		"before the release": {
			why:       "the pass comes again",
			state:     newState(recorded("db-0", "n1", "a"), since(time.Minute), release),
			want:      "n1: a n1 missing -1m0s",
			condition: "False NodesMissing: No node has the required labels of db-0 (n1)",
			after:     4 * time.Minute,
			codes:     "NodesMissing",
		},
		"the release": {
			why:       "labels that no node has are dropped, and the pods come a second later",
			state:     newState(recorded("db-0", "n1", "a"), since(5*time.Minute), release),
			pods:      []*corev1.Pod{pending("db-0", "a", now.Add(-time.Minute))},
			want:      "n1: n1 released 0s",
			condition: "True NodesFound: Nodes have the required labels of all pods",
			after:     time.Second,
			codes:     "TopologyReleased",
		},
		"at once": {
			why:       "without a time the release is at once",
			state:     newState(recorded("db-0", "n1", "a"), annotated(v1beta1.AnnotationReleaseMissingTopologyAfter, "0s")),
			want:      "n1: n1 released 0s",
			condition: "True NodesFound: Nodes have the required labels of all pods",
			after:     time.Second,
			codes:     "TopologyReleased",
		},
		"in part": {
			why:       "the zone stays, the hostname is dropped",
			state:     newState(recorded("db-0", "n1", "b"), requiring(zone, host), since(5*time.Minute), release),
			want:      "n1: b released 0s",
			condition: "True NodesFound: Nodes have the required labels of all pods",
			after:     time.Second,
			codes:     "TopologyReleased",
		},
		"in the other order": {
			why:       "no node has the hostname in any zone",
			state:     newState(recorded("db-0", "n1", "b"), requiring(host, zone), since(5*time.Minute), release),
			want:      "n1: b released 0s",
			condition: "True NodesFound: Nodes have the required labels of all pods",
			after:     time.Second,
			codes:     "TopologyReleased",
		},
		"not a duration": {
			why: "the annotation is no release",
			state: newState(recorded("db-0", "n1", "a"), since(time.Hour),
				annotated(v1beta1.AnnotationReleaseMissingTopologyAfter, "soon")),
			want:      "n1: a n1 missing -1h0m0s",
			condition: "False NodesMissing: No node has the required labels of db-0 (n1)",
			codes:     "InvalidAnnotation,NodesMissing",
		},
		"a stuck pod": {
			why:   "it was created before the release",
			state: newState(releasedNow),
			pods:  []*corev1.Pod{pending("db-0", "a", now.Add(-time.Minute))},
			want:  "n1: released -1s",
			stuck: "db-0",
		},
		"a lagging cache": {
			why:   "admission may see the release later",
			state: newState(releasedNow),
			pods:  []*corev1.Pod{pending("db-0", "a", now.Add(time.Second))},
			want:  "n1: released -1s",
			stuck: "db-0",
		},
		"a later pod": {
			why:   "its own template asks for the zone",
			state: newState(releasedNow),
			pods:  []*corev1.Pod{pending("db-0", "a", now.Add(time.Minute))},
			want:  "n1: released -1s",
		},
		"a pod of a zone": {
			why:   "a node has the zone",
			state: newState(releasedNow),
			pods:  []*corev1.Pod{pending("db-0", "b", now.Add(-time.Minute))},
			want:  "n1: released -1s",
		},
		"ready after release": {
			why:   "the record is a new one",
			state: newState(releasedNow),
			pods:  []*corev1.Pod{ready("db-0", "n2")},
			want:  "n2: b n2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.state, 1, nodes, c.pods...)
			pass := podstate.Plan(in)
			if diff := cmp.Diff(map[string]string{"db-0": c.want}, places(pass.Status.PodStates)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			got := ""
			for _, x := range pass.Status.Conditions {
				got = fmt.Sprintf("%s %s: %s", x.Status, x.Reason, x.Message)
			}
			if got != c.condition || pass.RequeueAfter != c.after {
				t.Errorf("%s: the condition is %q, again after %s", c.why, got, pass.RequeueAfter)
			}
			var stuck, codes []string
			for _, pod := range pass.Stuck {
				stuck = append(stuck, pod.Name)
			}
			for _, n := range pass.Notes {
				codes = append(codes, n.Code)
			}
			if strings.Join(stuck, ",") != c.stuck || strings.Join(codes, ",") != c.codes {
				t.Errorf("%s: stuck %v, notes %v", c.why, stuck, pass.Notes)
			}
			again := *c.state.DeepCopy()
			again.Status = pass.Status
			in.State = &again
			if diff := cmp.Diff(pass.Status, podstate.Plan(in).Status); diff != "" {
				t.Errorf("the next pass differs (-want +got):\n%s", diff)
			}
		})
	}
}

// The records of a PersistentPodState have a bound. What is escaped in a stored object takes more.
func TestRecordsAreBounded(t *testing.T) {
	for text, want := range map[string]int{"x": 10, `"`: 5, "<": 1} {
		t.Run(text, func(t *testing.T) { testRecordsAreBounded(t, text, want) })
	}
}

func testRecordsAreBounded(t *testing.T, text string, want int) {
	t.Helper()
	s := newState(annotations("big"), requiring(zone))
	nodes := []*corev1.Node{newNode("n1", "a")}
	var pods []*corev1.Pod
	for i := range int32(20) {
		p := ready(ordinals.Name("db", i), "n1")
		p.Annotations = map[string]string{"big": strings.Repeat(text, 100<<10)}
		pods = append(pods, p)
	}
	pass := podstate.Plan(input(s, 20, nodes, pods...))
	if n := len(pass.Status.PodStates); n != want || len(pass.Notes) != 20-want ||
		pass.Notes[0].Code != podstate.NoteTooLarge || pass.Notes[0].Level != note.Blocked {
		t.Errorf("%d records, notes %v", n, pass.Notes)
	}
	if stored, err := json.Marshal(pass.Status); err != nil || len(stored) > podstate.MostBytes {
		t.Errorf("the status takes %d bytes (%v)", len(stored), err)
	}
}

// The condition names a few pods.
func TestConditionNamesFewPods(t *testing.T) {
	s, nodes := newState(), []*corev1.Node{newNode("n1", "a")}
	for i := range int32(100) {
		recorded(ordinals.Name("db", i), "n1", "gone")(s)
	}
	pass := podstate.Plan(input(s, 100, nodes))
	if text := pass.Status.Conditions[0].Message; !strings.HasSuffix(text, " and 90 more") || len(text) > 300 {
		t.Errorf("the message is %s", text)
	}
}
