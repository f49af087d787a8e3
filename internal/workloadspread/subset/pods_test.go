package subset_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// TestInject: what a subset adds to a pod.
func TestInject(t *testing.T) {
	s := zoned("a", 3)
	s.Tolerations = []corev1.Toleration{{Key: "rented", Operator: corev1.TolerationOpExists}}
	s.PreferredNodeSelector = []corev1.PreferredSchedulingTerm{{Weight: 5}}
	s.Patch = patch(
		`{"metadata":{"labels":{"subset":"a"},"name":"evil","ownerReferences":[{"$patch":"replace"}],"annotations":{"` +
			kruise.MatchedWorkloadSpreadKey +
			`":"evil"}},"spec":{"priorityClassName":"low","containers":[{"name":"app","env":[{"name":"IN","value":"a"}]}]}}`)
	pod := podIn("web-1", "")
	pod.Spec.NodeName, pod.Spec.Priority = "", ptr.To[int32](5)
	pod.Spec.Affinity = &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}},
				{
					MatchFields: []corev1.NodeSelectorRequirement{{
						Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"},
					}},
				},
			},
		}},
	}
	before := pod.DeepCopy()
	m := subset.Match{Name: "spread", Subset: "a", UID: "id"}
	got, err := subset.Inject(pod, &s, m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, pod); diff != "" {
		t.Errorf("the input changed:\n%s", diff)
	}
	if is, _ := subset.MatchOf(got); is != m || subset.IDOf(got) != "id" {
		t.Errorf("match %+v", is)
	}
	for i, term := range got.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchExpressions)+len(term.MatchFields) != 2 {
			t.Errorf("term %d: %+v", i, term)
		}
	}
	if got.Name != "web-1" || got.Labels["subset"] != "a" || got.Spec.Priority != nil ||
		got.Spec.PriorityClassName != "low" || len(got.Spec.Tolerations) != 1 || len(got.Spec.Containers[0].Env) != 1 ||
		got.Spec.Containers[0].Image != "web:1" || len(got.OwnerReferences) > 0 {
		t.Errorf("%+v", got)
	}
	if len(got.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Error("the preferred term is missing")
	}
	s.Patch = patch(`{"spec":7}`)
	if _, err := subset.Inject(pod, &s, m); err == nil {
		t.Error("a patch that is none is applied")
	}
}

// TestAssign: which subset pods belong to that are older than the WorkloadSpread.
func TestAssign(t *testing.T) {
	ws := spreadOf(2, 2)
	ws.Spec.Subsets[0].Patch = patch(`{"metadata":{"labels":{"subset":"a"}}}`)
	gone := podIn("gone", "z")
	other := podIn("other", "a")
	other.Annotations[kruise.MatchedWorkloadSpreadKey] = `{"name":"another","subset":"b"}`
	bare := podIn("bare", "")
	bare.Spec.NodeName = "node-b"
	waits := podIn("waits", "")
	waits.Spec.NodeName = ""
	far := podIn("far", "")
	far.Spec.NodeName = "node-x"
	lost := podIn("lost", "")
	lost.Spec.NodeName = "none"
	in := subset.Assignment{
		Spread:  ws,
		Limits:  limitsOf(ws, 0),
		Pods:    []*corev1.Pod{podIn("mine", "b"), gone, other, bare, waits, far, lost},
		Node:    node,
		Version: func(*corev1.Pod) string { return one },
	}
	got := map[string]string{}
	for _, m := range subset.Assign(in) {
		got[m.Pod.Name] = m.Subset
		if m.Adopted {
			got[m.Pod.Name] += "+"
			labels, annotations, err := subset.Marks(ws, m)
			if err != nil || (labels["subset"] == "a") != (m.Subset == "a") ||
				annotations[kruise.MatchedWorkloadSpreadKey] != `{"name":"spread","subset":"`+m.Subset+`"}` {
				t.Errorf("%s: %v %v %v", m.Pod.Name, labels, annotations, err)
			}
		}
	}
	want := map[string]string{
		"mine":  "b",
		"gone":  subset.Outside,
		"other": "a+",
		"bare":  "b+",
		"waits": subset.Outside,
		"far":   subset.Outside,
		"lost":  subset.Outside,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ws.Annotations = map[string]string{appsv1beta1.WorkloadSpreadIgnorePatchExistingPodsAnnotation: "True"}
	if labels, _, err := subset.Marks(ws, subset.Member{
		Pod: other, Subset: "a", Adopted: true,
	}); err != nil || len(labels) > 0 {
		t.Errorf("the metadata of the patch is applied: %v %v", labels, err)
	}
}

// TestAssignPrefers: room decides between subsets that suit equally, and the preferred terms before it.
func TestAssignPrefers(t *testing.T) {
	ws := spreadOf(2, 10)
	for i := range ws.Spec.Subsets {
		ws.Spec.Subsets[i].RequiredNodeSelector = nil
	}
	var all []*corev1.Pod
	for i := range 4 {
		pod := podIn(fmt.Sprintf("web-%d", i), "")
		pod.Spec.NodeName = "node-b"
		all = append(all, pod)
	}
	in := subset.Assignment{
		Spread: ws, Limits: limitsOf(ws, 0), Pods: all, Node: node, Version: func(*corev1.Pod) string { return one },
	}
	text := func() string {
		all := ""
		for _, m := range subset.Assign(in) {
			all += m.Subset
		}
		return all
	}
	if got := text(); got != "aabb" {
		t.Error(got)
	}
	leaving := podIn("leaving", "a")
	leaving.DeletionTimestamp = &metav1.Time{Time: noon()}
	in.Pods = append([]*corev1.Pod{leaving, podIn("stays", "a")}, all...)
	if got := text(); got != "aaabbb" {
		t.Errorf("beside a pod that leaves: %s", got)
	}
	in.Pods = all
	ws.Spec.Subsets[1].PreferredNodeSelector = []corev1.PreferredSchedulingTerm{{
		Weight: 100, Preference: *zoned("b", 0).RequiredNodeSelector,
	}}
	if got := text(); got != "bbbb" {
		t.Error(got)
	}
}

// TestScore: the table of the reference.
func TestScore(t *testing.T) {
	s := zoned("a", 1)
	s.PreferredNodeSelector = []corev1.PreferredSchedulingTerm{{
		Weight: 100, Preference: *zoned("a", 0).RequiredNodeSelector,
	}}
	s.Patch = patch(`{"metadata":{"labels":{"subset":"a"}}}`)
	pod := podIn("web", "a")
	tainted := node("node-a")
	tainted.Spec.Taints = []corev1.Taint{{Key: "rented", Effect: corev1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		node   *corev1.Node
		labels map[string]string
		want   int64
		none   bool
	}{
		"preferred node, patched pod": {node: node("node-a"), labels: map[string]string{"subset": "a"}, want: 10010},
		"preferred node":              {node: node("node-a"), want: 10000},
		"another node":                {node: node("node-b"), none: true},
		"a taint":                     {node: tainted, none: true},
	} {
		pod.Labels = c.labels
		if got, suits := subset.Score(pod, c.node, &s); got != c.want || suits == c.none {
			t.Errorf("%s: %d, %t", name, got, suits)
		}
	}
}

// TestCosts: the table of the reference.
func TestCosts(t *testing.T) {
	unready := func(pods []*corev1.Pod, n int) []*corev1.Pod {
		for _, pod := range pods[len(pods)-n:] {
			pod.Status.Conditions = nil
		}
		return pods
	}
	for name, c := range map[string]struct {
		spread *subset.Spread
		pods   []*corev1.Pod
		want   map[int]int
		// first are pods that must have the cost of surplus.
		first []string
	}{
		"the worst pods are surplus": {
			spread: spreadOf(3),
			pods:   unready(pods(5, "a"), 2),
			want:   map[int]int{100: 3, -100: 2},
			first:  []string{"web-a-03", "web-a-04"},
		},
		"outside": {spread: spreadOf(3), pods: pods(2, "z"), want: map[int]int{-200: 2}},
		"three subsets": {
			spread: spreadOf(10, 10, -1),
			pods:   append(append(pods(20, "a"), pods(20, "b")...), pods(20, "c")...),
			want:   map[int]int{300: 10, -100: 10, 200: 10, -200: 10, 100: 20},
		},
		"an unresolved limit has no surplus": {spread: spreadOf("x", -1), pods: pods(4, "a"), want: map[int]int{200: 4}},
	} {
		got := map[int]int{}
		n := len(c.spread.Spec.Subsets)
		by := subset.Costs(subset.Observation{
			Spread: c.spread, Limits: limitsOf(c.spread, 0), Members: members(c.pods), Newest: one,
		})
		for _, cost := range by {
			got[cost]++
			if !subset.OwnCost(fmt.Sprint(cost), n) {
				t.Errorf("%s: %d is not known as own", name, cost)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, pod := range c.first {
			if by[pod] > 0 {
				t.Errorf("%s: %s stays", name, pod)
			}
		}
	}
	for _, foreign := range []string{"", "x", "150", "0", "400", "-500"} {
		if subset.OwnCost(foreign, 3) {
			t.Errorf("%q counts as own", foreign)
		}
	}
}

// TestReplicasAt: paths into a workload.
func TestReplicasAt(t *testing.T) {
	var object map[string]any
	if err := json.Unmarshal(
		[]byte(`{"spec":{"roles":[{"n":2},{"n":3}],"text":"2","deep":{"n":4},"half":0.5,"much":3000000000}}`),
		&object); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int32{
		"spec.roles.0.n": 2,
		"spec.deep.n":    4,
		"":               0,
		"spec.roles.2.n": -1,
		"spec.roles.x.n": -1,
		"spec.text":      -1,
		"spec.half":      -1,
		"spec.much":      -1,
		"spec.no":        -1,
		"spec.text.no":   -1,
		"spec":           -1,
	} {
		got, err := subset.ReplicasAt(object, []string{path})
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v", path, got, err)
		}
	}
	if got, err := subset.ReplicasAt(object, []string{"spec.roles.0.n", "spec.roles.1.n", ""}); got != 5 || err != nil {
		t.Error(got, err)
	}
}

// TestVersionOf: pods of Deployments have versions, and others have not.
func TestVersionOf(t *testing.T) {
	pod := podIn("web", "a")
	pod.Labels = map[string]string{"pod-template-hash": "85b", "controller-revision-hash": "web-77"}
	of := func(kind string, versioned ...string) string {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Controller: ptr.To(true)}}
		return subset.VersionOf(pod, versioned)
	}
	for kind, want := range map[string]string{"ReplicaSet": "85b", "CloneSet": one} {
		if got := of(kind, subset.DefaultVersioned()...); got != want {
			t.Errorf("%s: %s", kind, got)
		}
	}
	if got := of("ReplicaSet", "deployment"); got != "85b" {
		t.Errorf("%q: the pods of a Deployment are those of its ReplicaSets", got)
	}
	delete(pod.Labels, "pod-template-hash")
	if got := of("CloneSet", "cloneset"); got != "77" {
		t.Error(got)
	}
}
