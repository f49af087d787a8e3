package pub_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
)

// grouped has a budget count groups of two pods.
func grouped(o *object) {
	o.Spec.PodGroupPolicy = &policyv1beta1.PodGroupPolicy{GroupLabelKey: "group", GroupSize: 2}
}

func inGroup(name, group string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := newPod(name, edits...)
	pod.Labels = map[string]string{"app": "web"}
	if group != "" {
		pod.Labels["group"] = group
	}
	return pod
}

// A group counts as one, and a further pod of a group that is unavailable costs nothing.
func TestGroups(t *testing.T) {
	a0, a1, c0 := inGroup("a-0", "a"), inGroup("a-1", "a"), inGroup("c-0", "")
	b0, b1 := inGroup("b-0", "b"), inGroup("b-1", "b", unready)
	type step struct {
		pod  *corev1.Pod
		want pub.Reason
	}
	for name, c := range map[string]struct {
		amount func(*object)
		pods   []*corev1.Pod
		// numbers are current, desired, allowed and total.
		numbers [4]int32
		broken  []string
		steps   []step
	}{
		"the budget is used up": {
			amount: maxUnavailable("1"), pods: []*corev1.Pod{a0, a1, b0, b1, c0}, numbers: [4]int32{2, 2, 0, 3},
			broken: []string{"b"},
			steps:  []step{{a0, pub.Exhausted}, {b0, pub.GroupUnavailable}, {c0, pub.Exhausted}, {b1, pub.PodUnavailable}},
		},
		"the first pod of a group spends": {
			amount: maxUnavailable("2"), pods: []*corev1.Pod{a0, a1, b0, b1, c0}, numbers: [4]int32{2, 1, 1, 3},
			broken: []string{"b"},
			steps:  []step{{a0, pub.Spent}, {a1, pub.GroupUnavailable}, {c0, pub.Exhausted}, {b0, pub.GroupUnavailable}},
		},
		"a pod without a group is one": {
			amount: minAvailable("2"), pods: []*corev1.Pod{a0, a1, b0, b1, c0, inGroup("d-0", "")},
			numbers: [4]int32{3, 2, 1, 3}, broken: []string{"b"},
			steps: []step{{c0, pub.Spent}, {inGroup("d-0", ""), pub.Exhausted}},
		},
		"no group is free while too many are unavailable": {
			amount: maxUnavailable("1"), pods: []*corev1.Pod{a0, b0, b1, c0}, numbers: [4]int32{1, 2, 0, 3},
			broken: []string{"a", "b"}, steps: []step{{b0, pub.Exhausted}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := read(newObject("web", c.amount, grouped))
			b.Status = pub.Recount(pub.Input{
				Budget: b, Counts: b.Count(c.pods, pub.Policy{}), Total: deployments(5), Now: at(0),
			}).Status
			if numbers(b.Status) != c.numbers {
				t.Errorf("current, desired, allowed and total are %v", numbers(b.Status))
			}
			if diff := cmp.Diff(c.broken, b.Status.UnavailablePodGroups); diff != "" {
				t.Errorf("unavailable groups (-want +got):\n%s", diff)
			}
			for _, s := range c.steps {
				v := pub.Review(b, pub.Disruption{Pod: s.pod, Operation: pub.Evict}, at(0))
				if v.Reason != s.want {
					t.Errorf("%s: %s, want %s", s.pod.Name, v.Reason, s.want)
				}
				if v.Record != nil {
					b = b.Spend(*v.Record)
				}
			}
			again := pub.Recount(pub.Input{
				Budget: b, Counts: b.Count(c.pods, pub.Policy{}), Total: deployments(5), Now: at(1),
			}).Status
			if diff := cmp.Diff(b.Status.UnavailablePodGroups, again.UnavailablePodGroups); diff != "" {
				t.Errorf("unavailable groups after the records (-spent +counted):\n%s", diff)
			}
		})
	}
}

// A policy that cannot be read leaves a budget that counts pods.
func TestGroupsAreValidated(t *testing.T) {
	o := newObject("web", maxUnavailable("1"), grouped)
	if faults := pub.Validate(o, nil); len(faults) > 0 {
		t.Error(faults)
	}
	o.Spec.PodGroupPolicy = &policyv1beta1.PodGroupPolicy{GroupLabelKey: "not a key"}
	if faults := pub.Validate(o, nil); len(faults) != 2 {
		t.Errorf("want the key and the size, got %v", faults)
	}
	if b, notes := pub.Read(o); b.Groups != nil || len(notes) != 1 {
		t.Errorf("groups %v, notes %v", b.Groups, notes)
	}
}
