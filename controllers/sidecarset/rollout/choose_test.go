package rollout_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/note"
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

func TestHowMany(t *testing.T) {
	cases := map[string]struct {
		why                       string
		all, updated, ready       int
		partition, maxUnavailable string
		want                      int
		notes                     []string
	}{
		"4 of 10 places taken":       {"six are left", 100, 30, 26, "", "10", 6, []string{"UpdateLimited"}},
		"no place left":              {"5% of 1000 are not ready", 1000, 300, 250, "", "5%", 0, []string{"UpdateLimited"}},
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
		"the same in percent": {"18% of 1000", 1000, 800, 760, "18%", "100", 20, []string{"Partition"}},
		"and the other way": {
			why:            "10% of 1000",
			all:            1000,
			updated:        800,
			ready:          760,
			partition:      "10%",
			maxUnavailable: "100",
			want:           60,
			notes:          []string{"Partition", "UpdateLimited"},
		},
		"99% of 5":                    {"one pod at least goes ahead", 5, 0, 0, "99%", "5", 1, []string{"Partition"}},
		"1% of 5":                     {"rounded up", 5, 0, 0, "1%", "5", 4, []string{"Partition"}},
		"100% of 5":                   {"all stay", 5, 0, 0, "100%", "5", 0, []string{"Partition"}},
		"a partition beyond all":      {"all stay", 5, 0, 0, "7", "5", 0, []string{"Partition"}},
		"a partition below zero":      {"none stays", 5, 0, 0, "-7", "5", 5, nil},
		"50% of 2":                    {"one", 2, 0, 0, "50%", "2", 1, []string{"Partition"}},
		"no partition":                {"none stays", 2, 0, 0, "", "2", 2, nil},
		"budget 5% of 5":              {"rounded up", 5, 0, 0, "", "5%", 1, []string{"UpdateLimited"}},
		"budget 50% of 4":             {"two", 4, 0, 0, "", "50%", 2, []string{"UpdateLimited"}},
		"no budget":                   {"it is one", 5, 0, 0, "", "", 1, []string{"UpdateLimited"}},
		"a budget of none":            {"nothing goes", 5, 0, 0, "", "0", 0, []string{"UpdateLimited"}},
		"a budget below none":         {"nothing goes", 5, 0, 0, "", "-1", 0, []string{"UpdateLimited"}},
		"a fraction":                  {"33.3% of 3 are rounded up", 3, 0, 0, "33.3%", "3", 2, []string{"Partition"}},
		"all are updated":             {"nothing is left", 5, 5, 5, "", "5", 0, nil},
		"all are updated, none ready": {"nothing is left", 5, 5, 0, "", "5", 0, nil},
		"no pods":                     {"nothing to do", 0, 0, 0, "50%", "50%", 0, nil},
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

func TestWhich(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"), maxUnavailable("100%"))
	after := edited(before, image("mesh:2"))
	type podChange func(*corev1.Pod)
	label := func(key, value string) podChange { return func(p *corev1.Pod) { p.Labels[key] = value } }
	priority := func(s kruise.UpdatePriorityStrategy) setChange {
		return func(set *v1beta1.SidecarSet) { set.Spec.UpdateStrategy.PriorityStrategy = &s }
	}
	weigh := func(weight int32, key, value string) kruise.UpdatePriorityWeightTerm {
		return kruise.UpdatePriorityWeightTerm{
			Weight: weight, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		}
	}
	orders := func(keys ...string) setChange {
		var s kruise.UpdatePriorityStrategy
		for _, key := range keys {
			s.OrderPriority = append(s.OrderPriority, kruise.UpdatePriorityOrderTerm{OrderedKey: key})
		}
		return priority(s)
	}
	scatter := func(terms ...kruise.UpdateScatterTerm) setChange {
		return func(set *v1beta1.SidecarSet) { set.Spec.UpdateStrategy.ScatterStrategy = terms }
	}
	readyFor := func(d time.Duration) podChange {
		return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon().Add(-d)) }
	}
	none := func(*corev1.Pod) {}
	cases := map[string]struct {
		why    string
		change []setChange
		pods   []podChange
		want   string
	}{
		"by name":     {"nothing else tells them apart", nil, []podChange{none, none}, "ab"},
		"unscheduled": {"nobody misses it", nil, []podChange{none, func(p *corev1.Pod) { p.Spec.NodeName = "" }}, "ba"},
		"by phase": {"what does not run goes first", nil, []podChange{
			none, func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown },
			func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending },
		}, "cba"},
		"not ready": {
			why: "nobody misses it", pods: []podChange{none, func(p *corev1.Pod) { failed(p, "main"); readied(p) }}, want: "ba",
		},
		"by time": {
			why:  "what is ready for less time",
			pods: []podChange{readyFor(time.Hour), readyFor(time.Minute), readyFor(time.Second)},
			want: "cba",
		},
		"by restarts": {"the largest number counts", nil, []podChange{
			func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].RestartCount, p.Status.ContainerStatuses[1].RestartCount = 3, 3
			},
			func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 4 },
		}, "ba"},
		"by restarts of natives": {
			why:  "after those of containers; of an init container that has ended they do not count",
			pods: []podChange{native("plain", false, 9), native("mesh2", true, 1), none},
			want: "bac",
		},
		"by creation": {
			why:  "what is newer",
			pods: []podChange{none, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon()) }},
			want: "ba",
		},
		"no creation": {
			why:  "it is not told since when",
			pods: []podChange{none, func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{} }},
			want: "ba",
		},
		"weights": {
			why: "foo is 50, bar 30",
			change: []setChange{priority(kruise.UpdatePriorityStrategy{WeightPriority: []kruise.UpdatePriorityWeightTerm{
				weigh(30, "k", "bar"), weigh(50, "k", "foo"),
			}})},
			pods: []podChange{none, label("k", "bar"), label("k", "foo"), label("k", "foo")},
			want: "cdba",
		},
		"weights add up": {
			why: "both match one",
			change: []setChange{priority(kruise.UpdatePriorityStrategy{WeightPriority: []kruise.UpdatePriorityWeightTerm{
				weigh(50, "k", "foo"), weigh(30, "l", "x"), weigh(30, "m", "x"),
			}})},
			pods: []podChange{label("k", "foo"), func(p *corev1.Pod) { p.Labels["l"], p.Labels["m"] = "x", "x" }},
			want: "ba",
		},
		"orders": {
			why:    "larger numbers first",
			change: []setChange{orders("k")},
			pods:   []podChange{label("k", "5"), label("k", "20"), label("k", "x-10")},
			want:   "bca",
		},
		"orders by key": {
			why:    "the first key goes first, and what has none before all",
			change: []setChange{orders("k", "l")},
			pods:   []podChange{label("l", "9"), label("k", "1"), none},
			want:   "cba",
		},
		"orders without one": {
			why:    "a value without a number is 0",
			change: []setChange{orders("k")},
			pods:   []podChange{label("k", "one"), label("k", "1")},
			want:   "ba",
		},
		"scattered": {
			why:    "one keeps the end",
			change: []setChange{scatter(kruise.UpdateScatterTerm{Key: "k", Value: "x"})},
			pods:   []podChange{label("k", "x"), label("k", "x"), label("k", "x"), none, none, none},
			want:   "adebfc",
		},
		"scattered by any": {
			why:    "as each value",
			change: []setChange{scatter(kruise.UpdateScatterTerm{Key: "k", Value: "*"})},
			pods:   []podChange{label("k", "x"), label("k", "x"), label("k", "x"), none, none, none},
			want:   "adebfc",
		},
		"selected": {"only those", []setChange{only("k", "x")}, []podChange{none, label("k", "x")}, "b"},
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
		"under way": {"an earlier update has not restarted its container", nil, []podChange{none, func(p *corev1.Pod) {
			p.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = `{"s":{"revision":"x","updateTimestamp":null,"lastContainerStatuses":{"mesh":{"imageID":"sha256:mesh:1"}}}}`
			p.Spec.Containers[0].Image = "mesh:3"
		}}, "a"},
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

// TestPartitionKeepsStuck: pods that no image can update are among those that stay.
func TestPartitionKeepsStuck(t *testing.T) {
	first := sidecarSet("s", cold("mesh", "mesh:1"), maxUnavailable("100%"), partition("3"))
	second := edited(first, env)
	third := edited(second, image("mesh:2"))
	pods := fleet(first, second, 6, 4, 4) // two that lack the variable
	plan := compute(t, input(third, pods...))
	if got, want := updated(plan), []string{"pod-0000", "pod-0001", "pod-0002"}; !cmp.Equal(got, want) {
		t.Errorf("with two stuck and a partition of 3, one of the others stays: want %v, got %v", want, got)
	}
	if len(plan.Marks) != 2 {
		t.Errorf("want 2 pods told that they are stuck, got %d", len(plan.Marks))
	}
}

// TestRefused: a pod that may not be updated leaves its place in the budget to the next.
func TestRefused(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	in := input(edited(before, image("mesh:2")), fleet(before, before, 3, 0, 0)...)
	in.Held = map[types.UID]time.Time{in.Pods[0].UID: noon().Add(time.Second)}
	plan := compute(t, in)
	if got := updated(plan); !cmp.Equal(got, []string{"pod-0001"}) {
		t.Errorf("want the second, got %v", got)
	}
	if diff := cmp.Diff([]note.Note{
		{Level: note.Waiting, Code: "Refused", Object: "default/pod-0000", Text: "its update was refused a moment ago"},
		{
			Level: note.Waiting, Code: "UpdateLimited", Text: "1 pod waits to be updated (updated and not ready: 1, at most: 1)",
		},
	}, plan.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
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
