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
		"crowd":    {[]change{onNode("n")}, []change{onNode("m")}, "share its node"},
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
			if name == "crowd" {
				input.Instances = append(input.Instances, updated("c", onNode("n")))
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
