package scale_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/scale"
)

// deletedAtOnce deletes n, with no limit.
func deletedAtOnce(t *testing.T, input scale.Input, n int) scale.Result {
	t.Helper()
	input.Limits = scale.Limits{Replicas: int32(len(input.Instances) - n), MaxUnavailable: noLimit}
	return compute(t, input)
}

// TestVictims has two instances that one thing tells apart.
func TestVictims(t *testing.T) {
	cases := map[string]struct {
		goes, stays []change
		why         string
	}{
		"assigned": {[]change{onNode("")}, []change{pending}, "on no node"},
		"pending": {
			[]change{pending}, []change{func(p *corev1.Pod) { notReady(p); p.Status.Phase = corev1.PodUnknown }}, "does not run",
		},
		"unknown": {
			[]change{notReady, func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }}, []change{notReady}, "does not run",
		},
		"another phase": {
			[]change{func(p *corev1.Pod) { p.Status.Phase = "Dreaming" }},
			[]change{func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }},
			"does not run",
		},
		"available": {
			[]change{readySince(time.Second)}, []change{annotated(corev1.PodDeletionCost, "-9")}, "not available",
		},
		"ready": {
			[]change{notReady}, []change{in("Updating"), annotated(corev1.PodDeletionCost, "-9")}, "not ready",
		},
		"cost": {
			[]change{annotated(corev1.PodDeletionCost, "10")}, []change{annotated(corev1.PodDeletionCost, "100")}, "cost",
		},
		"negative cost": {[]change{annotated(corev1.PodDeletionCost, "-1")}, nil, "cost"},
		"malformed cost": {
			[]change{annotated(corev1.PodDeletionCost, "+5")}, []change{annotated(corev1.PodDeletionCost, "1")}, "cost",
		},
		"ready for less": {[]change{readySince(30 * time.Minute)}, nil, "became ready later"},
		"since an unknown time": {
			[]change{func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime.Reset() }},
			[]change{readySince(30 * time.Minute)},
			"became ready later",
		},
		"restarts": {[]change{restarted(3)}, []change{restarted(1)}, "restarted"},
		"newer":    {[]change{created(time.Hour)}, nil, "newer"},
		"created an unknown time": {
			[]change{func(p *corev1.Pod) { p.CreationTimestamp.Reset() }}, []change{created(time.Minute)}, "newer",
		},
		"name": {nil, nil, "name"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			input := scale.Input{
				MinReadySeconds: 10, Instances: []scale.Instance{updated("b-stays", c.stays...), updated("a-goes", c.goes...)},
			}
			if name == "since an unknown time" {
				input.MinReadySeconds = 0
			}
			plan := deletedAtOnce(t, input, 1)
			if names(plan.Delete) != "a-goes" || !strings.Contains(plan.Notes[0].Text, c.why) {
				t.Errorf("want a-goes because of %q, got %s, %v", c.why, names(plan.Delete), plan.Notes)
			}
		})
	}
}

func TestDeletionCost(t *testing.T) {
	for text, zero := range map[string]bool{
		"": true, "0": true, "+5": true, "007": true, "00": true, "1e3": true, " 5": true, "2147483648": true,
		"-2147483649": true, "5": false, "-5": false,
	} {
		plan := deletedAtOnce(t,
			scale.Input{Instances: []scale.Instance{updated("a", annotated(corev1.PodDeletionCost, text)), updated("b")}}, 1)
		if got := !strings.Contains(plan.Notes[0].Text, "cost"); got != zero {
			t.Errorf("%q: want as good as 0: %v, got %v", text, zero, plan.Notes)
		}
	}
}

func onNodes(spread string) []scale.Instance {
	var all []scale.Instance
	for word := range strings.FieldsSeq(spread) {
		node, indices, _ := strings.Cut(word, "=")
		for i := range strings.SplitSeq(indices, ",") {
			all = append(all, updated(node+i, onNode(node)))
		}
	}
	return all
}

// TestVictimsOnOneNode has the nodes a, with the instances 0, 4 and 10, and so on. The larger the number behind the
// colon, the sooner they go.
func TestVictimsOnOneNode(t *testing.T) {
	input := scale.Input{Instances: onNodes("a=00,04,10 b=03,06 c=05 d=07,08,09")}
	order := names(deletedAtOnce(t, input, len(input.Instances)).Delete)
	if want := "a00 d07 a04 b03 d08 a10 b06 c05 d09"; order != want {
		t.Errorf("two with 2 others on their node, then three with 1, then the rest: want %s, got %s", want, order)
	}
}

func TestVictimsOverZones(t *testing.T) {
	input := scale.Input{
		Instances:  onNodes("a=0,1 b=0,1 c=0,1,2 d=0,1,2,3,4 e=0,1,2,3,4 f=0,1,2 i=0,1,2,3,4"),
		SpreadKeys: []string{"zone"},
		NodeLabels: map[string]map[string]string{
			"a": {},
			"b": {"zone": "1"},
			"c": {"zone": "1"},
			"d": {"zone": "1"},
			"e": {"zone": "2"},
			"f": {"zone": "2"},
			"i": {"zone": "3"},
		},
	}
	got := names(deletedAtOnce(t, input, len(input.Instances)).Delete)
	if want := "d0 d1 c0 e0 d2 e1 b0 e2 c1 f0 i0 d3 e3 i1 b1 f1 i2 c2 e4 i3 d4 f2 i4 a0 a1"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// TestVictimsCountAllThatStay has an old and an updated instance on node a, and an old one alone on b.
func TestVictimsCountAllThatStay(t *testing.T) {
	all := []scale.Instance{old("1", onNode("b")), old("2", onNode("a")), updated("3", onNode("a"))}
	limits := scale.Limits{Replicas: 2, Partition: 1, MaxUnavailable: 1}
	plan := compute(t, scale.Input{Instances: all, Limits: limits})
	if names(plan.Delete) != "2" || !strings.Contains(plan.Notes[0].Text, "share its node") {
		t.Errorf("the one that shares its node with an updated one goes: got %s, %v", names(plan.Delete), plan.Notes)
	}
	plan = compute(t, scale.Input{
		Instances: all, Limits: limits, SpreadKeys: []string{"zone"},
		NodeLabels: map[string]map[string]string{"a": {"zone": "1"}, "b": {"zone": "2"}},
	})
	if names(plan.Delete) != "2" {
		t.Errorf("the same in zones: got %s", names(plan.Delete))
	}
}

// TestVictimsWeighKeys has three zones of three instances, and nearly as many racks: the key with more domains weighs
// more.
func TestVictimsWeighKeys(t *testing.T) {
	labels := map[string]map[string]string{}
	var all []scale.Instance
	for i := range 9 {
		node := fmt.Sprintf("n%d", i)
		labels[node] = map[string]string{"zone": fmt.Sprint(i % 3), "rack": fmt.Sprint(i)}
		all = append(all, updated(fmt.Sprint(i), onNode(node)))
	}
	labels["n8"]["rack"] = "7" // 7 and 8 share a rack; their zones are as full as the third
	input := scale.Input{Instances: all, SpreadKeys: []string{"zone", "rack"}, NodeLabels: labels}
	if got := names(deletedAtOnce(t, input, 4).Delete); got != "0 1 2 7" {
		t.Errorf("the first of each zone, then the first of the rack, as there are more racks: got %s", got)
	}
}

// TestVictimsWeighExactly has one zone and seven racks: two places in the zone weigh as much as one in a rack, since
// 3 * 3 = 9, so that the name decides between the first instance and the third, which shares its rack.
func TestVictimsWeighExactly(t *testing.T) {
	input := scale.Input{SpreadKeys: []string{"zone", "rack"}, NodeLabels: map[string]map[string]string{}}
	for i, rack := range strings.Fields("0 1 2 3 4 5 6 2") {
		name := fmt.Sprint(i)
		input.NodeLabels["of-"+name] = map[string]string{"zone": "a", "rack": rack}
		input.Instances = append(input.Instances, updated(name))
	}
	if got := names(deletedAtOnce(t, input, 3).Delete); got != "0 2 1" {
		t.Errorf("got %s", got)
	}
}

// TestVictimsOfGroups looks at the weakest pod of each group.
func TestVictimsOfGroups(t *testing.T) {
	group := func(name string, worker ...change) scale.Instance {
		return scale.Instance{
			Name: name, Size: 2, Updated: true, Pods: []*corev1.Pod{pod(name + "-0"), pod(name+"-1", worker...)},
		}
	}
	for name, c := range map[string]struct {
		weak change
		why  string
	}{
		"assigned": {onNode(""), "on no node"},
		"phase":    {func(p *corev1.Pod) { p.Status.Phase = "" }, "does not run"},
		"state":    {in("Updating"), "not available"},
		"cost":     {annotated(corev1.PodDeletionCost, "-1"), "cost"},
		"ready":    {readySince(time.Minute), "became ready later"},
		"restarts": {restarted(1), "restarted"},
		"created":  {created(time.Minute), "newer"},
	} {
		plan := deletedAtOnce(t, scale.Input{Instances: []scale.Instance{group("a"), group("b", c.weak)}}, 1)
		if names(plan.Delete) != "b" || !strings.Contains(plan.Notes[0].Text, c.why) {
			t.Errorf("%s: want b because of %q, got %s, %v", name, c.why, names(plan.Delete), plan.Notes)
		}
	}
	half := group("b")
	half.Pods[1] = nil
	plan := deletedAtOnce(t, scale.Input{Instances: []scale.Instance{group("a"), half, {Name: "c", Updated: true}}}, 2)
	if names(plan.Delete) != "c b" {
		t.Errorf("one with no pods goes before one that is not whole: got %s", names(plan.Delete))
	}
}
