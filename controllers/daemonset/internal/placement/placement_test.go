package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset/internal/placement"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

func noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

// parse reads "n1 n2:old n3:old,new- n4/s": nodes with their pods, the oldest first. A pod is old or new; a dash is not
// ready, a star terminates, a bang has failed, and p prepares its deletion. A node may have /s for NoSchedule, /e for
// NoExecute, /x for a node that is gone.
func parse(text string) (nodes []*corev1.Node, pods []*corev1.Pod) {
	for field := range strings.FieldsSeq(text) {
		name, list, _ := strings.Cut(field, ":")
		name, mark, _ := strings.Cut(name, "/")
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
		switch mark {
		case "s":
			node.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		case "e":
			node.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
		}
		if mark != "x" {
			nodes = append(nodes, node)
		}
		for i, what := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
			pods = append(pods, podOf(name, i, what, mark == "x"))
		}
	}
	return nodes, pods
}

func podOf(node string, i int, what string, unscheduled bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name:              fmt.Sprintf("%s-%d", node, i),
		UID:               types.UID(fmt.Sprintf("%s-%d", node, i)),
		CreationTimestamp: metav1.NewTime(noon().Add(time.Duration(i-100) * time.Minute)),
		Labels:            map[string]string{"release": what[:3]},
	}}
	pod.Spec.NodeName = node
	if unscheduled {
		pod.Spec.NodeName = ""
		eligible.Pin(&pod.Spec, node)
	}
	ready := corev1.ConditionTrue
	pod.Status.Phase = corev1.PodRunning
	for _, mark := range what[3:] {
		switch mark {
		case '-':
			ready = corev1.ConditionFalse
		case '*':
			pod.DeletionTimestamp = ptr.To(metav1.NewTime(noon()))
		case '!':
			pod.Status.Phase = corev1.PodFailed
		case 'p':
			pod.Labels[kruise.LifecycleStateKey] = string(kruise.LifecycleStatePreparingDelete)
		}
	}
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodReady, Status: ready, LastTransitionTime: pod.CreationTimestamp,
	}}
	return pod
}

func input(text string, changes ...func(*placement.Input)) placement.Input {
	in := placement.Input{Now: noon(), Rule: eligible.Compile(&corev1.PodSpec{}, eligible.Options{Daemon: true})}
	in.Nodes, in.Pods = parse(text)
	in.IsUpdated = func(pod *corev1.Pod) bool { return pod.Labels["release"] == "new" }
	for _, change := range changes {
		change(&in)
	}
	return in
}

func amount(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }

// told is a result in a line: slots with their pods, pods without a slot, and the bounds.
func told(r placement.Result) string {
	bySlot, surplus := map[string]string{}, []string{}
	for _, i := range r.Instances {
		text := i.Pod.Name
		if i.NotNow {
			text += "~"
		}
		if !slices.Contains(r.Slots, i.Name) {
			surplus = append(surplus, text)
			continue
		}
		bySlot[i.Name] = text
	}
	var all []string
	for _, slot := range r.Slots {
		all = append(all, slot+"="+bySlot[slot])
	}
	return fmt.Sprintf("%s | -%s | max %d, keep %d",
		strings.Join(all, " "), strings.Join(surplus, " -"), r.MaxUnavailable, r.Partition)
}

func TestPlan(t *testing.T) {
	surge := func(in *placement.Input) { in.Limits.MaxSurge = amount("1") }
	second := func(n string) func(*placement.Input) {
		return func(in *placement.Input) { in.Limits.MaxSurge = amount(n) }
	}
	burst := func(n string) func(*placement.Input) {
		return func(in *placement.Input) { in.Limits.Burst = amount(n) }
	}
	keep := func(n string) func(*placement.Input) {
		return func(in *placement.Input) { in.Limits.Partition = amount(n) }
	}
	for why, c := range map[string]struct {
		text    string
		changes []func(*placement.Input)
		want    string
	}{
		"every node gets a slot":                              {"n1 n2:new", nil, "n1= n2=n2-0 | - | max 1, keep 0"},
		"no nodes":                                            {"", nil, " | - | max 0, keep 0"},
		"NoSchedule keeps a pod, and gets none":               {"n1/s n2/s:new", nil, "n2=n2-0 | - | max 0, keep 0"},
		"NoSchedule keeps an old pod from being recreated":    {"n1/s:old", nil, "n1=n1-0~ | - | max 0, keep 1"},
		"NoExecute deletes":                                   {"n1/e:new", nil, " | -n1-0 | max 0, keep 0"},
		"a pod that waits for a node that is gone is deleted": {"n1/x:new", nil, " | -n1-0 | max 0, keep 0"},
		"the oldest of two stays":                             {"n1:new,new", nil, "n1=n1-0 | -n1-1 | max 1, keep 0"},
		"a terminating pod holds the slot":                    {"n1:new*", nil, "n1=n1-0 | - | max 1, keep 0"},
		"a terminating pod holds nothing beside another":      {"n1:new*,new", nil, "n1=n1-1 | - | max 1, keep 0"},
		"with a surge it holds nothing": {
			"n1:new*", []func(*placement.Input){surge}, "n1= | - | max 0, keep 0",
		},
		"a failed pod holds the slot until it is gone":   {"n1:new!", nil, "n1=n1-0 | - | max 1, keep 0"},
		"a pod that is held before its deletion is kept": {"n1:newp", nil, "n1=n1-0 | - | max 1, keep 0"},
		"a surge opens a second slot for the last node": {
			"n1:old n2:old", []func(*placement.Input){surge}, "n1=n1-0~ n2=n2-0~ n2/new= | - | max 0, keep 0",
		},
		"a new pod that serves replaces the old one": {
			"n1:old n2:old,new", []func(*placement.Input){surge}, "n1=n1-0~ n2=n2-1 | -n2-0 | max 0, keep 0",
		},
		"an old pod that is not ready goes at once": {
			"n1:old-,new-", []func(*placement.Input){surge}, "n1=n1-1 | -n1-0 | max 0, keep 0",
		},
		"old pods that are not ready surge at once": {
			"n1:old- n2:old-", []func(*placement.Input){surge}, "n1=n1-0~ n1/new= n2=n2-0~ n2/new= | - | max 0, keep 0",
		},
		"no surge while paused": {
			"n1:old",
			[]func(*placement.Input){surge, func(in *placement.Input) { in.Updates = scale.UpdatesPaused }},
			"n1=n1-0~ | - | max 0, keep 0",
		},
		"no surge where no pod would come": {
			"n1/s:old", []func(*placement.Input){surge}, "n1=n1-0~ | - | max 0, keep 1",
		},
		"the partition keeps the first names from a surge": {
			"n1:old n2:old", []func(*placement.Input){surge, keep("2")}, "n1=n1-0~ n2=n2-0~ | - | max 0, keep 2",
		},
		"a percentage of the partition is rounded down": {
			"n1:old n2:old n3:old", []func(*placement.Input){keep("50%")}, "n1=n1-0 n2=n2-0 n3=n3-0 | - | max 1, keep 1",
		},
		"nonsense is as if it were not set": {
			"n1:old",
			[]func(*placement.Input){keep("x%"), func(in *placement.Input) { in.Limits.Burst = amount("-5") }},
			"n1=n1-0 | - | max 1, keep 0",
		},
		"the selector keeps other nodes": {
			"n1:old n2:old",
			[]func(*placement.Input){func(in *placement.Input) {
				in.Selector = labels.SelectorFromSet(labels.Set{"name": "n2"})
			}},
			"n1=n1-0~ n2=n2-0 | - | max 1, keep 0",
		},
		"the burst bounds creations, which count against it": {
			"n1 n2 n3",
			[]func(*placement.Input){func(in *placement.Input) {
				in.Limits.Burst = amount("2")
				in.Limits.MaxUnavailable = amount("3")
			}},
			"n1= n2= | - | max 2, keep 0",
		},
		"the burst bounds second pods": {
			"n1:old n2:old n3:old",
			[]func(*placement.Input){second("100%"), burst("2")},
			"n1=n1-0~ n2=n2-0~ n2/new= n3=n3-0~ n3/new= | - | max 0, keep 0",
		},
		"progressive creation goes by the first names": {
			"n1 n2:new n3",
			[]func(*placement.Input){keep("1"), func(in *placement.Input) { in.PartitionedScaling = true }},
			"n1= n2=n2-0 | - | max 1, keep 1",
		},
		"and stops where as many are new as the rest": {
			"n1 n2:new n3:new",
			[]func(*placement.Input){keep("1"), func(in *placement.Input) { in.PartitionedScaling = true }},
			"n2=n2-0 n3=n3-0 | - | max 1, keep 1",
		},
		"a budget of the reference leaves old pods out": {
			"n1:old- n2:old",
			[]func(*placement.Input){func(in *placement.Input) { in.Loose = true }},
			"n1=n1-0 n2=n2-0 | - | max 2, keep 0",
		},
		"a pod where none would come does not take the budget": {
			"n1/s:old- n2:old", nil, "n1=n1-0~ n2=n2-0 | - | max 2, keep 1",
		},
		"a budget of nothing is one": {
			"n1:old",
			[]func(*placement.Input){func(in *placement.Input) { in.Limits.MaxUnavailable = amount("0") }},
			"n1=n1-0 | - | max 1, keep 0",
		},
		"50% of 3, rounded up": {
			"n1 n2 n3",
			[]func(*placement.Input){func(in *placement.Input) { in.Limits.MaxUnavailable = amount("50%") }},
			"n1= n2= n3= | - | max 2, keep 0",
		},
	} {
		t.Run(why, func(t *testing.T) {
			if diff := cmp.Diff(c.want, told(placement.Plan(input(c.text, c.changes...)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A failed pod is deleted at once, the next after a second, and the pauses double up to fifteen minutes.
func TestBackoff(t *testing.T) {
	in := input("n1:new!")
	for i, seconds := range []int{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900} {
		want := time.Duration(seconds) * time.Second
		if want > 0 {
			r := placement.Plan(in)
			if len(r.Failed) != 0 || r.RequeueAfter != want || len(r.Slots) != 0 || len(r.Notes) != 1 {
				t.Fatalf("after %d failures: %v after %v, slots %v", i, r.Failed, r.RequeueAfter, r.Slots)
			}
			in.Now = in.Now.Add(want)
		}
		r := placement.Plan(in)
		if len(r.Failed) != 1 {
			t.Fatalf("after %d failures: not deleted", i)
		}
		in.Backoff = r.Backoff
	}
	in.Now = in.Now.Add(time.Hour)
	if r := placement.Plan(in); len(r.Failed) != 1 ||
		cmp.Diff(placement.Plan(input("n1")).Backoff, placement.Backoff{}) != "" {
		t.Error("old failures still count")
	}
}

func TestCount(t *testing.T) {
	in := input("n1:new n2:old n3:new- n4 n5:new* n6/e:new n7:old,new-")
	want := placement.Counts{Desired: 6, Current: 5, Ready: 3, Available: 3, Updated: 2, Misscheduled: 1}
	if diff := cmp.Diff(want, placement.Count(in, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.Ready, want.Available, want.Updated = 2, 2, 1
	if diff := cmp.Diff(want, placement.Count(in, map[types.UID]*corev1.Pod{"n1-0": nil})); diff != "" {
		t.Errorf("after the deletion on n1 (-want +got):\n%s", diff)
	}
}

// Whatever there is, the laws hold.
func TestLaws(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		checkLaws(t, r, seed)
	}
}

func randomText(r *rand.Rand) string {
	var fields []string
	for i := range r.IntN(7) {
		field := fmt.Sprint("n", i)
		field += []string{"", "", "", "", "/s", "/e", "/x"}[r.IntN(7)]
		var pods []string
		for range []int{0, 1, 1, 1, 2, 3}[r.IntN(6)] {
			pods = append(pods, []string{"old", "new"}[r.IntN(2)]+[]string{"", "", "-", "*", "!", "p"}[r.IntN(6)])
		}
		fields = append(fields, field+":"+strings.Join(pods, ","))
	}
	return strings.Join(fields, " ")
}

func checkLaws(t *testing.T, r *rand.Rand, seed uint64) {
	t.Helper()
	text := randomText(r)
	in := input(text, func(in *placement.Input) {
		pick := func() *intstr.IntOrString {
			return []*intstr.IntOrString{
				nil, amount("0"), amount("1"), amount("2"), amount("50%"), amount("100%"), amount("x"), amount("-1"),
			}[r.IntN(8)]
		}
		in.Limits = placement.Limits{MaxUnavailable: pick(), MaxSurge: pick(), Partition: pick(), Burst: pick()}
		in.Updates = []scale.Updates{
			scale.UpdatesRun, scale.UpdatesRun, scale.UpdatesPaused, scale.UpdatesOnDelete,
		}[r.IntN(4)]
		in.PartitionedScaling, in.Loose = r.IntN(3) == 0, r.IntN(3) == 0
	})
	got := placement.Plan(in)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("seed %d: %q with %+v: %s\n%s", seed, text, in.Limits, fmt.Sprintf(format, args...), told(got))
	}
	shuffled := in
	shuffled.Nodes, shuffled.Pods = slices.Clone(in.Nodes), slices.Clone(in.Pods)
	r.Shuffle(len(shuffled.Nodes), func(i, j int) {
		shuffled.Nodes[i], shuffled.Nodes[j] = shuffled.Nodes[j], shuffled.Nodes[i]
	})
	r.Shuffle(len(shuffled.Pods), func(i, j int) {
		shuffled.Pods[i], shuffled.Pods[j] = shuffled.Pods[j], shuffled.Pods[i]
	})
	if other := told(placement.Plan(shuffled)); other != told(got) {
		fail("another order gives %s", other)
	}
	names, slots, pods := map[string]bool{}, map[string]int{}, map[types.UID]bool{}
	for _, i := range got.Instances {
		if names[i.Name] || pods[i.Pod.UID] {
			fail("two instances %s of %s", i.Name, i.Pod.Name)
		}
		names[i.Name], pods[i.Pod.UID] = true, true
	}
	active := map[string]int{}
	for _, pod := range in.Pods {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
			active[eligible.NodeOf(pod)]++
		}
	}
	for _, slot := range got.Slots {
		slots[placement.NodeOf(slot)]++
	}
	if n := len(slices.DeleteFunc(slices.Clone(got.Slots), func(slot string) bool {
		return names[slot]
	})); n > int(got.Burst) {
		fail("%d pods are created, and the burst is %d", n, got.Burst)
	}
	verdicts, opened := map[string]eligible.Verdict{}, 0
	for _, node := range in.Nodes {
		verdicts[node.Name] = in.Rule.Check(node)
	}
	for node, n := range slots {
		if most := 1 + min(int(got.Surge), 1); n > most || !verdicts[node].Stay || !verdicts[node].Run && active[node] == 0 {
			fail("%d slots on %s", n, node)
		}
		if n == 2 && !names[node+"/new"] {
			for _, pod := range in.Pods {
				if ready, _ := scale.Available(pod, 0, in.Now); ready && pod.DeletionTimestamp == nil &&
					eligible.NodeOf(pod) == node {
					opened++
					break
				}
			}
		}
	}
	if opened > int(got.Surge) {
		fail("%d slots are opened", opened)
	}
	if !slices.IsSorted(got.Slots) || got.MaxUnavailable < 0 || got.Partition < 0 || got.Burst < 1 {
		fail("slots or bounds")
	}
}

func ExamplePlan() {
	nodes, pods := parse("n1:new n2")
	placed := placement.Plan(placement.Input{
		Now: noon(), Nodes: nodes, Pods: pods, Rule: eligible.Compile(&corev1.PodSpec{}, eligible.Options{Daemon: true}),
		IsUpdated: func(pod *corev1.Pod) bool { return pod.Labels["release"] == "new" },
	})
	fmt.Println(placed.Slots, placed.Desired, len(placed.Instances))
	// Output: [n1 n2] 2 1
}

func ExampleCount() {
	in := input("n1:new n2:old n3")
	counts := placement.Count(in, nil)
	fmt.Println(counts.Desired, counts.Current, counts.Updated)
	// Output: 3 2 1
}
