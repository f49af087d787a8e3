package workloadspread

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/note"
)

// TestTakeover: objects of a cluster that runs the reference need no write.
func TestTakeover(t *testing.T) {
	for _, stage := range []string{"1-created", "2-updating", "3-updated"} {
		all, err := recorded[subset.Spread](stage, "workloadspreads.v1beta1.yaml")
		if err != nil || len(all) != 1 {
			t.Fatal(len(all), err)
		}
		pods, err := recorded[corev1.Pod](stage, "pods.yaml")
		if err != nil {
			t.Fatal(err)
		}
		s := snapshotOf(all[0])
		s.target = workloadspread.Target{UID: "uid", Base: subset.Base{Replicas: 3}}
		for _, pod := range pods {
			if pod.Labels["app"] == "plain" {
				s.pods = append(s.pods, pod)
				s.newest = pod.Labels["pod-template-hash"]
			}
		}
		if len(s.pods) != 3 {
			t.Fatalf("%d pods", len(s.pods))
		}
		p := plan(s)
		if !equality.Semantic.DeepEqual(p.status, all[0].Status) {
			t.Errorf("%s: the status differs:\n%s", stage, cmp.Diff(all[0].Status, p.status))
		}
		if len(p.patches)+len(p.deletions)+len(p.notes) > 0 {
			t.Errorf("%s: %d patches, %d deletions, %v", stage, len(p.patches), len(p.deletions), p.notes)
		}
	}
}

// TestPlan: what one pass writes beside the status.
func TestPlan(t *testing.T) {
	in := func(name, subsetName, cost string) *corev1.Pod {
		pod := podOf(name, noon())
		run(pod, subsetName, noon())
		pod.Annotations = map[string]string{
			kruise.MatchedWorkloadSpreadKey: subset.Text(subset.Match{Name: "spread", Subset: subsetName}),
		}
		if cost != "" {
			pod.Annotations[corev1.PodDeletionCost] = cost
		}
		return pod
	}
	older := podOf("old", noon())
	run(older, "b", noon())
	for name, c := range map[string]struct {
		spread  *subset.Spread
		pods    []*corev1.Pod
		change  func(*snapshot)
		patches int
		codes   []string
		after   time.Duration
		text    string
	}{
		"pods with their costs need nothing": {
			spread: spreadOf(2, -1), pods: []*corev1.Pod{in("p1", "a", "200"), in("p2", "b", "100")},
		},
		"a cost that a user has set is replaced": {
			spread: spreadOf(2, -1), pods: []*corev1.Pod{in("p1", "a", "7")}, patches: 1, text: `"200"`,
		},
		"surplus goes first": {
			spread: spreadOf(1, -1), pods: []*corev1.Pod{in("p1", "a", "200"), in("p2", "a", "200")}, patches: 1, text: `"-100"`,
		},
		"an older pod is adopted with one write": {
			spread: spreadOf(1, -1), pods: []*corev1.Pod{older}, patches: 1, text: `{\"name\":\"spread\",\"subset\":\"b\"}`,
			change: func(s *snapshot) {
				s.nodes["node-b"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
					Name: "node-b", Labels: map[string]string{"zone": "b"},
				}}
			},
		},
		"a patch that cannot be applied adopts nothing": {
			spread: func() *subset.Spread {
				ws := spreadOf(1, -1)
				ws.Spec.Subsets[1].Patch.Raw = []byte(`{"metadata":{"labels":7}}`)
				return ws
			}(),
			pods: []*corev1.Pod{older}, patches: 1, codes: []string{noteBadPatch},
			change: func(s *snapshot) {
				s.nodes["node-b"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
					Name: "node-b", Labels: map[string]string{"zone": "b"},
				}}
			},
		},
		"a Job has no costs, and an unwatched target is read again": {
			spread: func() *subset.Spread {
				ws := spreadOf(1, -1)
				ws.Spec.TargetReference.Kind, ws.Spec.TargetReference.APIVersion = "Job", "batch/v1"
				return ws
			}(),
			pods: []*corev1.Pod{in("p1", "a", "")}, change: func(s *snapshot) { s.target.Unwatched = true }, after: recheck,
		},
		"no subsets": {spread: spreadOf(), pods: []*corev1.Pod{in("p1", "a", "7")}, codes: []string{noteInvalid}},
		"an unknown base": {
			spread: func() *subset.Spread {
				ws := spreadOf(1, -1)
				ws.Spec.Subsets[0].MaxReplicas = ptr.To(intstr.FromString("50%"))
				return ws
			}(),
			change: func(s *snapshot) { s.target.Base.Unknown = true }, codes: []string{subset.NoteUnknownReplicas},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(c.spread, c.pods...)
			if c.change != nil {
				c.change(s)
			}
			before := s.spread.DeepCopy()
			p := plan(s)
			var codes []string
			for _, n := range p.notes {
				if n.Level == note.Blocked {
					codes = append(codes, n.Code)
				}
			}
			if len(p.patches) != c.patches || !cmp.Equal(codes, c.codes) || p.after != c.after {
				t.Errorf("%d patches, notes %v, again after %s", len(p.patches), p.notes, p.after)
			}
			for _, w := range p.patches {
				data, err := w.Data()
				if err != nil || !json.Valid(data) || !bytes.Contains(data, []byte(c.text)) {
					t.Errorf("patch %s, %v", data, err)
				}
			}
			if diff := cmp.Diff(before, s.spread); diff != "" {
				t.Errorf("the input changed:\n%s", diff)
			}
		})
	}
}

// TestUnmark: what was written is removed, and what a user has set stays.
func TestUnmark(t *testing.T) {
	pod := podOf("p", noon())
	pod.Annotations = map[string]string{
		kruise.MatchedWorkloadSpreadKey: `{"name":"spread","subset":"a"}`, corev1.PodDeletionCost: "200", "mine": "1",
	}
	data, err := unmark(pod).Data()
	if text := string(data); err != nil || !strings.Contains(text, "remove") || strings.Contains(text, "mine") ||
		!strings.Contains(text, "pod-deletion-cost") {
		t.Errorf("%s, %v", data, err)
	}
	pod.Annotations[corev1.PodDeletionCost] = "77"
	if data, err = unmark(pod).Data(); err != nil || strings.Contains(string(data), "pod-deletion-cost") {
		t.Errorf("%s, %v", data, err)
	}
}
