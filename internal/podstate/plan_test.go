package podstate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/podstate"
)

// TestMissing: a record whose labels no node has, the release after a time, and the pods that wait. The nodes are in
// the zones b and c.
func TestMissing(t *testing.T) {
	nodes := []*corev1.Node{newNode("n2", "b"), newNode("n3", "c")}
	release := annotated(v1beta1.AnnotationReleaseMissingTopologyAfter, "5m")
	since := func(ago time.Duration) func(*podstate.State) {
		return func(s *podstate.State) {
			r := s.Status.PodStates["db-0"]
			r.MissingSince = &metav1.Time{Time: now.Add(-ago)}
			s.Status.PodStates["db-0"] = r
			s.Status.Conditions = []metav1.Condition{{Type: "TopologyAvailable", Status: "False"}}
		}
	}
	released := func(s *podstate.State) {
		s.Status.PodStates = map[string]v1beta1.PodState{"db-0": {
			NodeName: "n1", ReleasedAt: &metav1.Time{Time: now.Add(-time.Second)},
		}}
	}
	inA := recorded("db-0", "n1", "a")
	minute := now.Add(-time.Minute)
	const gone, found = "NodesMissing: No node has the required labels of db-0 (n1)",
		"NodesFound: Nodes have the required labels of all pods"
	for sentence, c := range map[string]struct {
		state     *podstate.State
		pod       *corev1.Pod
		record    string
		condition string
		after     time.Duration
		stuck     bool
		codes     string
	}{
		"without the zone the pod waits": {
			state: newState(inA), record: "n1: a n1 missing 0s", condition: gone, codes: "NodesMissing",
		},
		"the time of the loss stays": {
			state: newState(inA, since(time.Hour)), record: "n1: a n1 missing -1h0m0s", condition: gone, codes: "NodesMissing",
		},
		"the release takes its time": {
			state: newState(inA, since(time.Minute), release), record: "n1: a n1 missing -1m0s", condition: gone,
			after: 4 * time.Minute, codes: "NodesMissing",
		},
		"a release comes before the deletion of the pod": {
			state: newState(inA, since(5*time.Minute), release), pod: pending("db-0", "a", minute),
			record: "n1: n1 released 0s", condition: found, codes: "TopologyReleased",
		},
		"what is no duration releases nothing": {
			state:  newState(inA, since(time.Hour), annotated(v1beta1.AnnotationReleaseMissingTopologyAfter, "soon")),
			record: "n1: a n1 missing -1h0m0s", condition: gone, codes: "InvalidAnnotation,NodesMissing",
		},
		"a pod from before the release is stuck": {
			state: newState(released), pod: pending("db-0", "a", minute), record: "n1: released -1s", stuck: true,
		},
		"admission may see the release later": {
			state: newState(released), pod: pending("db-0", "a", now.Add(time.Second)), record: "n1: released -1s", stuck: true,
		},
		"the template of a later pod asks for the zone": {
			state: newState(released), pod: pending("db-0", "a", now.Add(time.Minute)), record: "n1: released -1s",
		},
		"a pod of a zone with a node is not stuck": {
			state: newState(released), pod: pending("db-0", "b", minute), record: "n1: released -1s",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := input(c.state, 1, nodes)
			if c.pod != nil {
				in.Pods = []*corev1.Pod{c.pod}
			}
			pass := podstate.Plan(in)
			if diff := cmp.Diff(map[string]string{"db-0": c.record}, places(pass.Status.PodStates)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			condition := ""
			for _, x := range pass.Status.Conditions {
				condition = x.Reason + ": " + x.Message
				if (x.Status == metav1.ConditionTrue) != (condition == found) {
					t.Errorf("the condition is %+v", x)
				}
			}
			var codes []string
			for _, n := range pass.Notes {
				codes = append(codes, n.Code)
			}
			if condition != c.condition || pass.RequeueAfter != c.after || (len(pass.Stuck) > 0) != c.stuck ||
				strings.Join(codes, ",") != c.codes {
				t.Errorf("the condition is %q, again after %s, stuck %d, notes %v", condition, pass.RequeueAfter,
					len(pass.Stuck), pass.Notes)
			}
		})
	}
}

// The condition names one pod.
func TestConditionNamesOnePod(t *testing.T) {
	s := newState()
	for i := range int32(100) {
		recorded(ordinals.Name("db", i), "n1", "gone")(s)
	}
	pass := podstate.Plan(input(s, 100, []*corev1.Node{newNode("n1", "a")}))
	if text := pass.Status.Conditions[0].Message; !strings.HasSuffix(text, " db-0 (n1) and 99 more") {
		t.Errorf("the message is %s", text)
	}
}
