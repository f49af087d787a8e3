package rollout_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

// fleet makes pods of a set before and after a change: the first ones have the new one, and of those the first are
// ready.
func fleet(before, after *v1beta1.SidecarSet, all, updated, ready int) []*corev1.Pod {
	old, fresh := podOf("", before), podOf("", after)
	broken := fresh.DeepCopy()
	failed(broken, "mesh")
	readied(broken)
	pods := make([]*corev1.Pod, all)
	for i := range pods {
		pod := old
		switch {
		case i < ready:
			pod = fresh
		case i < updated:
			pod = broken
		}
		pods[i] = pod.DeepCopy()
		pods[i].Name = fmt.Sprintf("pod-%04d", i)
		pods[i].UID = types.UID(pods[i].Name)
	}
	return pods
}

// TestOracle has the numbers; these rows have the notes, and values that admission rejects.
func TestHowMany(t *testing.T) {
	cases := map[string]struct {
		why                       string
		all, updated, ready       int
		partition, maxUnavailable string
		want                      int
		notes                     []string
	}{
		"4 of 10 places taken":       {"six are left", 100, 30, 26, "", "10", 6, []string{"UpdateLimited"}},
		"partition below the budget": {"20 are left", 1000, 800, 760, "180", "100", 20, []string{"Partition"}},
		"budget below the partition": {
			why:            "40 are not ready",
			all:            1000,
			updated:        800,
			ready:          760,
			partition:      "100",
			maxUnavailable: "100",
			want:           60,
			notes:          []string{"Partition", "UpdateLimited"},
		},
		"99% of 5":               {"one pod at least goes ahead", 5, 0, 0, "99%", "5", 1, []string{"Partition"}},
		"a partition below zero": {"none stays", 5, 0, 0, "-7", "5", 5, nil},
		"no budget":              {"it is one", 5, 0, 0, "", "", 1, []string{"UpdateLimited"}},
		"a budget below none":    {"nothing goes", 5, 0, 0, "", "-1", 0, []string{"UpdateLimited"}},
		"a fraction":             {"33.3% of 3 are rounded up", 3, 0, 0, "33.3%", "3", 2, []string{"Partition"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := sidecarSet("s", cold("mesh", "mesh:1"), partition(c.partition), maxUnavailable(c.maxUnavailable))
			after := edited(before, image("mesh:2"))
			plan := compute(t, input(after, fleet(before, after, c.all, c.updated, c.ready)...))
			if len(plan.Updates) != c.want {
				t.Errorf("%s: want %d updates, got %d", c.why, c.want, len(plan.Updates))
			}
			if diff := cmp.Diff(c.notes, codes(plan.Notes)); diff != "" {
				t.Errorf("%s: notes (-want +got):\n%s", c.why, diff)
			}
			s := plan.Status
			got := []int{int(s.MatchedPods), int(s.UpdatedPods), int(s.ReadyPods), int(s.UpdatedReadyPods)}
			if diff := cmp.Diff([]int{c.all, c.updated, c.all - c.updated + c.ready, c.ready}, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOracle has the order of pods that the oracle knows; these are the other ones.
func TestWhich(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"), maxUnavailable("100%"))
	after := edited(before, image("mesh:2"))
	type podChange func(*corev1.Pod)
	label := func(key, value string) podChange { return func(p *corev1.Pod) { p.Labels[key] = value } }
	orders := func(keys ...string) setChange {
		var s kruise.UpdatePriorityStrategy
		for _, key := range keys {
			s.OrderPriority = append(s.OrderPriority, kruise.UpdatePriorityOrderTerm{OrderedKey: key})
		}
		return func(set *v1beta1.SidecarSet) { set.Spec.UpdateStrategy.PriorityStrategy = &s }
	}
	none := func(*corev1.Pod) {}
	cases := map[string]struct {
		why    string
		change []setChange
		pods   []podChange
		want   string
	}{
		"by restarts of natives": {
			why:  "after those of containers; of an init container that has ended they do not count",
			pods: []podChange{native("plain", false, 9), native("mesh2", true, 1), none},
			want: "bac",
		},
		"no creation": {
			why:  "it is not told since when",
			pods: []podChange{none, func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{} }},
			want: "ba",
		},
		"orders": {
			why:    "larger numbers first",
			change: []setChange{orders("k")},
			pods:   []podChange{label("k", "5"), label("k", "20"), label("k", "x-10")},
			want:   "bca",
		},
		"orders without one": {
			why:    "a value without a number is 0",
			change: []setChange{orders("k")},
			pods:   []podChange{label("k", "one"), label("k", "1")},
			want:   "ba",
		},
		"selected by nothing": {"an empty selector is all", []setChange{func(s *v1beta1.SidecarSet) {
			s.Spec.UpdateStrategy.Selector = &metav1.LabelSelector{}
		}}, []podChange{none, none}, "ab"},
		"not in the list": {
			why:  "it was never injected",
			pods: []podChange{none, func(p *corev1.Pod) { delete(p.Annotations, kruise.SidecarSetInjectedListKey) }},
			want: "a",
		},
		"lacks it": {
			why:  "it has not the container",
			pods: []podChange{none, func(p *corev1.Pod) { p.Spec.Containers[0].Name = "other" }},
			want: "a",
		},
		"not matched": {"its labels have changed", nil, []podChange{none, label("app", "other")}, "a"},
		"deleted": {
			why:  "it goes anyway",
			pods: []podChange{none, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }},
			want: "a",
		},
		"over": {
			why:  "it has ended",
			pods: []podChange{none, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }},
			want: "a",
		},
		"an unreadable record": {"nothing but an update replaces it", nil, []podChange{none, func(p *corev1.Pod) {
			p.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = `{"s":7}`
		}}, "ab"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var pods []*corev1.Pod
			for i, change := range c.pods {
				pod := podOf(string(rune('a'+i)), before)
				change(pod)
				pods = append(pods, pod)
			}
			set := edited(after, c.change...)
			for range 2 {
				got := ""
				for _, name := range updated(compute(t, input(set, pods...))) {
					got += name
				}
				if got != c.want {
					t.Errorf("%s: want %s, got %s", c.why, c.want, got)
				}
				slices.Reverse(pods)
			}
		})
	}
}

// native gives a pod an init container that has restarted.
func native(name string, keepsRunning bool, restarts int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.Container{Name: name}
		if keepsRunning {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: name, RestartCount: restarts,
		})
	}
}

func TestStandstill(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	cases := map[string]struct {
		why    string
		change setChange
		notes  []string
		field  string
	}{
		"paused":            {"until it is resumed", paused, []string{"Paused"}, ""},
		"not to be updated": {"never", notUpdate, []string{"NotUpdate"}, ""},
		"an unknown type": {
			why: "is a rolling update", change: func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Type = "Odd" },
		},
		"a bad partition": {
			why:    "nobody knows how many",
			change: partition("many"),
			notes:  []string{"SpecUnread"},
			field:  "spec.updateStrategy.partition",
		},
		"a bad budget": {
			why:    "nobody knows how many",
			change: maxUnavailable("x%"),
			notes:  []string{"SpecUnread"},
			field:  "spec.updateStrategy.maxUnavailable",
		},
		"a bad selector": {
			"nobody knows which", func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Selector = bad() },
			[]string{"NotSelected"},
			"spec.updateStrategy.selector",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := edited(before, image("mesh:2"), c.change)
			pass, err := rollout.Plan(input(set, podOf("a", before)))
			plan := pass.Result()
			var spec *rollout.SpecError
			if errors.As(err, &spec) != (c.field != "") || spec != nil && spec.Field != c.field {
				t.Errorf("want an error of field %q, got %v", c.field, err)
			}
			if diff := cmp.Diff(c.notes, codes(plan.Notes)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if want := c.notes == nil; (len(plan.Updates) == 1) != want || plan.Status.MatchedPods != 1 {
				t.Errorf("%d updates of %d pods", len(plan.Updates), plan.Status.MatchedPods)
			}
		})
	}
}

func bad() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Odd"}}}
}

func TestSelectors(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	in := func(selector *metav1.LabelSelector) setChange {
		return func(s *v1beta1.SidecarSet) { s.Spec.NamespaceSelector = selector }
	}
	match := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	cases := map[string]struct {
		why        string
		change     setChange
		namespaces map[string]map[string]string
		want       int32
		fails      bool
	}{
		"every namespace": {"none is asked for", in(nil), nil, 1, false},
		"by name":         {"every namespace has its name", in(match(corev1.LabelMetadataName, "default")), nil, 1, false},
		"by another name": {"it is not that one", in(match(corev1.LabelMetadataName, "x")), nil, 0, false},
		"by label": {
			why:        "it has it",
			change:     in(match("team", "a")),
			namespaces: map[string]map[string]string{"default": {"team": "a"}},
			want:       1,
		},
		"by another label": {
			why:        "it has not",
			change:     in(match("team", "b")),
			namespaces: map[string]map[string]string{"default": {"team": "a"}},
		},
		"an unknown one": {"nothing is known of it", in(match("team", "a")), nil, 0, false},
		"a bad one":      {"it may mean the pod or not", in(bad()), nil, 0, true},
		"no selector":    {"it selects nothing", func(s *v1beta1.SidecarSet) { s.Spec.Selector = nil }, nil, 0, false},
		"an empty selector": {
			why: "it selects nothing", change: func(s *v1beta1.SidecarSet) { s.Spec.Selector = &metav1.LabelSelector{} },
		},
		"a bad selector": {
			why: "it may mean the pod or not", change: func(s *v1beta1.SidecarSet) { s.Spec.Selector = bad() }, fails: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			given := input(edited(before, c.change), podOf("a", before))
			given.Namespaces = c.namespaces
			if got, err := status(given); got.MatchedPods != c.want || (err != nil) != c.fails {
				t.Errorf("%s: want %d pods, got %d (%v)", c.why, c.want, got.MatchedPods, err)
			}
		})
	}
}

// TestManyValues: very many values scatter as well as they can, and no pod is lost.
func TestManyValues(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	var pods []*corev1.Pod
	for i := range 1200 {
		pod := podOf(fmt.Sprintf("pod-%04d", i), before)
		pod.Labels["k"] = fmt.Sprint(i / 2)
		pods = append(pods, pod)
	}
	change := func(s *v1beta1.SidecarSet) {
		s.Spec.UpdateStrategy.ScatterStrategy = kruise.UpdateScatterStrategy{{Key: "k", Value: "*"}}
	}
	names := updated(compute(t, input(edited(before, image("mesh:2"), maxUnavailable("100%"), change), pods...)))
	if n := len(slices.Compact(slices.Sorted(slices.Values(names)))); n != len(pods) || len(names) != n {
		t.Errorf("%d updates of %d pods", len(names), n)
	}
}
