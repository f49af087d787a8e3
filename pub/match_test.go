package pub_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/pub"
)

func TestMatch(t *testing.T) {
	deployment := pub.Chain{
		{Group: "apps", Kind: "ReplicaSet", Name: "web-1"}, {Group: "apps", Kind: "Deployment", Name: "web"},
	}
	stamped := annotation(kruise.PodRelatedPubKey, "s")
	budgets := func(all ...*object) []*object { return all }
	other := func(b *object) { b.Spec.Selector.MatchLabels["app"] = "other" }
	cases := map[string]struct {
		why     string
		budgets []*object
		pod     *corev1.Pod
		chain   pub.Chain
		want    string
	}{
		"selected": {"the selector selects the pod", budgets(newObject("s")), newPod("a"), nil, "s"},
		"30: target": {
			why:     "the workload is named",
			budgets: budgets(newObject("t", targeted("Deployment", "web"))),
			pod:     newPod("a"),
			chain:   deployment,
			want:    "t",
		},
		"30: another target": {
			why:     "another workload is named",
			budgets: budgets(newObject("t", targeted("Deployment", "other"))),
			pod:     newPod("a"),
			chain:   deployment,
		},
		"another group": {
			why:     "the group is compared",
			budgets: budgets(newObject("t", targeted("Deployment", "web"))),
			pod:     newPod("a"),
			chain:   pub.Chain{{Group: "apps.kruise.io", Kind: "Deployment", Name: "web"}},
		},
		"another version": {
			why: "the version is not",
			budgets: budgets(newObject("t", targeted("Deployment", "web"), func(b *object) {
				b.Spec.TargetReference.APIVersion = "apps/v1beta2"
			})),
			pod:   newPod("a"),
			chain: deployment,
			want:  "t",
		},
		"target first": {
			why:     "whatever the names and the order are",
			budgets: budgets(newObject("a"), newObject("t", targeted("Deployment", "web"))),
			pod:     newPod("a"),
			chain:   deployment,
			want:    "t",
		},
		"first by name": {
			why: "whatever the order is", budgets: budgets(newObject("b"), newObject("a")), pod: newPod("a"), want: "a",
		},
		"a stamp and another one": {
			why:     "what matches now comes before the stamp",
			budgets: budgets(newObject("a"), newObject("s")),
			pod:     newPod("a", stamped),
			want:    "a",
		},
		"a stamp that no longer matches": {
			why: "the selector decides", budgets: budgets(newObject("s", other)), pod: newPod("a", stamped),
		},
		"a stamp of a target": {
			why:     "the pod was found by the selector of the target",
			budgets: budgets(newObject("s", targeted("Shop", "web"))),
			pod:     newPod("a", stamped),
			want:    "s",
		},
		"an older stamp": {
			why:     "the older key is read",
			budgets: budgets(newObject("s", targeted("Shop", "web"))),
			pod:     newPod("a", annotation(kruise.PodRelatedPubKeyOld, "s")),
			want:    "s",
		},
		"both": {
			why: "a target takes precedence over a selector",
			budgets: budgets(newObject("t", func(b *object) {
				s := b.Spec.Selector
				targeted("Deployment", "web")(b)
				b.Spec.Selector = s
			})),
			pod: newPod("a"),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				var all []pub.Budget
				for _, o := range c.budgets {
					all = append([]pub.Budget{read(o)}, all...) // in the other order
				}
				got := ""
				if b := pub.Match(c.pod, c.chain, all); b != nil {
					got = b.Name
				}
				if got != c.want {
					t.Errorf("%s: guarded by %q, want %q", c.why, got, c.want)
				}
				for i, j := 0, len(c.budgets)-1; i < j; i, j = i+1, j-1 {
					c.budgets[i], c.budgets[j] = c.budgets[j], c.budgets[i]
				}
			}
		})
	}
}

// TestOverlap has every pair of operators, in both orders.
func TestOverlap(t *testing.T) {
	in := func(values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	notIn := func(values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: "k", Operator: metav1.LabelSelectorOpNotIn, Values: values}
	}
	exists := metav1.LabelSelectorRequirement{Key: "k", Operator: metav1.LabelSelectorOpExists}
	absent := metav1.LabelSelectorRequirement{Key: "k", Operator: metav1.LabelSelectorOpDoesNotExist}
	of := func(all ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: all}
	}
	matching := func(pairs map[string]string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: pairs}
	}
	cases := map[string]struct {
		a, b *metav1.LabelSelector
		want bool
	}{
		"In and In that share a value":   {of(in("a", "b")), of(in("b", "c")), true},
		"In and In that share none":      {of(in("a")), of(in("b")), false},
		"In and NotIn of another value":  {of(in("a", "b")), of(notIn("a")), true},
		"In and NotIn of all its values": {of(in("a")), of(notIn("a", "b")), false},
		"In and Exists":                  {of(in("a")), of(exists), true},
		"In and DoesNotExist":            {of(in("a")), of(absent), false},
		"Exists and Exists":              {of(exists), of(exists), true},
		"Exists and NotIn":               {of(exists), of(notIn("a")), true},
		"Exists and DoesNotExist":        {of(exists), of(absent), false},
		"NotIn and NotIn":                {of(notIn("a")), of(notIn("b")), true},
		"NotIn and DoesNotExist":         {of(notIn("a")), of(absent), true},
		"DoesNotExist and DoesNotExist":  {of(absent), of(absent), true},
		"labels are In":                  {matching(map[string]string{"k": "a"}), of(in("a")), true},
		"29: other keys": {
			matching(map[string]string{"k": "a"}), matching(map[string]string{"k": "a", "l": "b"}), false,
		},
		"two keys, one of which cannot be met": {
			matching(map[string]string{"k": "a", "l": "b"}), matching(map[string]string{"k": "a", "l": "c"}), false,
		},
		"a later requirement replaces": {of(in("a"), in("b")), of(in("a")), false},
		"empty":                        {of(), of(), false},
		"nil":                          {nil, of(in("a")), false},
		"an unknown operator": {
			of(metav1.LabelSelectorRequirement{Key: "k", Operator: "Gt"}), of(exists), false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if pub.Overlap(c.a, c.b) != c.want || pub.Overlap(c.b, c.a) != c.want {
				t.Errorf("overlap is %v and %v, want %v", pub.Overlap(c.a, c.b), pub.Overlap(c.b, c.a), c.want)
			}
		})
	}
}

func TestTotalOf(t *testing.T) {
	cases := map[string]struct {
		why  string
		all  []pub.Workload
		bare bool
		want pub.Total
	}{
		"none":      {"nothing is wanted", nil, false, pub.Total{}},
		"bare pods": {"pods without a controller add nothing", nil, true, pub.Total{}},
		"two": {
			why: "the sum", all: []pub.Workload{{UID: "1", Replicas: 2}, {UID: "2", Replicas: 3}}, want: pub.Total{Replicas: 5},
		},
		"one twice": {
			why:  "several ReplicaSets of one Deployment count once",
			all:  []pub.Workload{{UID: "1", Replicas: 2}, {UID: "1", Replicas: 2}},
			want: pub.Total{Replicas: 2},
		},
		"gone": {
			why:  "an owner that is gone adds nothing",
			all:  []pub.Workload{{UID: "1", Replicas: 2, Gone: true}, {UID: "2", Replicas: 3}},
			want: pub.Total{Replicas: 3},
		},
		"all gone": {
			why: "no pod is wanted", all: []pub.Workload{{UID: "1", Gone: true}}, want: pub.Total{ScaledDown: true},
		},
		"scaled down":            {"no pod is wanted", []pub.Workload{{UID: "1"}}, false, pub.Total{ScaledDown: true}},
		"scaled down, bare pods": {"the bare pods may be wanted", []pub.Workload{{UID: "1"}}, true, pub.Total{}},
		"unknown": {
			why: "-1 is promised", all: []pub.Workload{{UID: "1", Unknown: true}}, want: pub.Total{Replicas: -1, Unknown: 1},
		},
		"unknown beside known": {
			why:  "what is known counts",
			all:  []pub.Workload{{UID: "1", Unknown: true}, {UID: "2", Replicas: 3}},
			want: pub.Total{Replicas: 3, Unknown: 1},
		},
		"absurd": {
			why:  "the sum does not overflow",
			all:  []pub.Workload{{UID: "1", Replicas: 2147483647}, {UID: "2", Replicas: 2147483647}},
			want: pub.Total{Replicas: 2147483647},
		},
		"below zero": {
			why:  "no workload takes from another",
			all:  []pub.Workload{{UID: "1", Replicas: -5}, {UID: "2", Replicas: 3}},
			want: pub.Total{Replicas: 3},
		},
		"several without a UID": {
			why: "they cannot be compared", all: []pub.Workload{{Replicas: 1}, {Replicas: 1}}, want: pub.Total{Replicas: 2},
		},
		"unknown and scaled down": {
			why:  "the unknown one may want pods",
			all:  []pub.Workload{{UID: "1", Unknown: true}, {UID: "2"}},
			want: pub.Total{Unknown: 1},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pub.TotalOf(c.all, c.bare)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
