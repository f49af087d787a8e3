package scale_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// first makes the order of updates that of the names, whatever else tells instances apart.
func first(all []scale.Instance) (*kruise.UpdatePriorityStrategy, []scale.Instance) {
	for i := range all {
		labelled("place", string(rune('a'+i)))(all[i].Pods[0])
	}
	s := &kruise.UpdatePriorityStrategy{}
	for i := range all {
		s.WeightPriority = append(s.WeightPriority, kruise.UpdatePriorityWeightTerm{
			Weight:        int32(len(all) - i),
			MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"place": string(rune('a' + i))}},
		})
	}
	return s, all
}

// TestUpdateLimit has instances in the order of their update.
func TestUpdateLimit(t *testing.T) {
	cases := map[string]struct {
		why                          string
		replicas, unavailable, surge int32
		instances                    string
		want                         string
	}{
		"unavailable ones at both ends": {
			why:         "the first goes, an available one may not, and none overtakes it",
			replicas:    10,
			unavailable: 2,
			instances:   "1O! 7O 1O! 1N",
			want:        "00O",
		},
		"the same without the tenth":       {"a missing one takes a place", 10, 2, 0, "1O! 7O 1O!", "00O"},
		"a rollout begins":                 {"one at a time", 5, 1, 0, "5O", "00O"},
		"all ready":                        {"as many as may be unavailable", 8, 3, 0, "7O 1N", "00O 01O 02O"},
		"none available":                   {"not more at a time than may be", 5, 2, 0, "5O!", "00O 01O"},
		"two are being updated":            {"no more at a time", 5, 2, 0, "3O! 2N!", ""},
		"a surplus one":                    {"is a place more, and takes it", 5, 2, 1, "5O 1N!", "00O 01O"},
		"the first is not ready":           {"it takes the only place", 3, 1, 0, "1O! 2O", "00O"},
		"a later one is not ready":         {"it has the only place, and is not reached", 3, 1, 0, "1O 1O! 1O", ""},
		"nothing may be unavailable":       {"nothing goes", 3, 0, 0, "1O! 2O", ""},
		"doomed ones are candidates":       {"they use up places", 3, 2, 0, "1Ox 2O", "00O 01O"},
		"all may be unavailable":           {"all go at once", 3, 3, 0, "1O! 2O", "00O 01O 02O"},
		"leaving ones are no candidates":   {"and take a place", 4, 2, 0, "1Op 3O", "01O"},
		"a PreparingUpdate one goes first": {"it has its place already", 4, 1, 0, "3O 1Ou", "03O"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			priority, all := first(instances(t, c.instances))
			plan := compute(t, scale.Input{
				Instances: all, Priority: priority, UpdateOnly: true,
				Limits: scale.Limits{Replicas: c.replicas, MaxUnavailable: c.unavailable, MaxSurge: c.surge},
			})
			if got := names(plan.Update); got != c.want {
				t.Errorf("%s: want %q, got %q", c.why, c.want, got)
			}
			if len(plan.Update) < strings.Count(c.instances, "O") && codes(plan) == "" {
				t.Error("no note explains why the others wait")
			}
		})
	}
}

func TestUpdateOrder(t *testing.T) {
	is := func(value string) change { return labelled("is", value) }
	weight := &kruise.UpdatePriorityStrategy{WeightPriority: []kruise.UpdatePriorityWeightTerm{
		{Weight: 1, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"is": "A"}}},
	}}
	broken := weight.DeepCopy()
	broken.WeightPriority = append(broken.WeightPriority, kruise.UpdatePriorityWeightTerm{
		Weight: 9,
		MatchSelector: metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "is", Operator: "Like"}},
		},
	})
	all := []scale.Instance{
		old("a"), old("b", created(time.Hour)), old("c", restarted(1)), old("d", readySince(time.Minute)), old("e", notReady),
		old("f", pending), old("g", onNode(""), pending), old("h", annotated(corev1.PodDeletionCost, "-5")),
		old("i", in("Sleeping")),
	}
	cases := map[string]struct {
		why   string
		input scale.Input
		want  string
	}{
		"by standing": {"cost and availability do not matter", scale.Input{Instances: all}, "g f e d c b a h i"},
		"unavailable first": {
			"a broken one is replaced before others", scale.Input{Instances: all, UnavailableFirst: true}, "g f e i d c b a h",
		},
		"weight": {
			"before standing",
			scale.Input{Instances: []scale.Instance{old("a", is("A")), old("b", notReady)}, Priority: weight},
			"a b",
		},
		"a broken selector": {
			"the rest of the strategy holds",
			scale.Input{Instances: []scale.Instance{old("a", is("A")), old("b", notReady)}, Priority: broken},
			"a b (PriorityIgnored)",
		},
		"preparing before weight": {
			"it has been taken out already",
			scale.Input{
				Instances: []scale.Instance{old("a", is("A")), old("b", in(kruise.LifecycleStatePreparingUpdate))},
				Priority:  weight,
			},
			"b a",
		},
		"scattered": {
			"among all, not only those to update",
			scale.Input{
				Instances: []scale.Instance{old("a"), old("b"), old("c"), old("d"), old("e", is("A")), old("f", is("A"))},
				Scatter:   kruise.UpdateScatterStrategy{{Key: "is", Value: "A"}},
			},
			"e a b c d f",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n := int32(len(c.input.Instances))
			c.input.Limits = scale.Limits{Replicas: n, MaxUnavailable: n}
			plan := compute(t, c.input)
			got := names(plan.Update)
			if words := codes(plan); words != "" {
				got += " (" + words + ")"
			}
			if got != c.want {
				t.Errorf("%s: want %q, got %q", c.why, c.want, got)
			}
		})
	}
}

func TestUpdateStops(t *testing.T) {
	grace := annotated(kruise.InPlaceUpdateGraceKey, `{"revision":"x"}`)
	limits := scale.Limits{Replicas: 2, MaxUnavailable: 2}
	cases := map[string]struct {
		why   string
		input scale.Input
		want  string
	}{
		"in grace": {
			"its target is not wanted any more, and nothing has restarted yet",
			scale.Input{Limits: limits, Instances: []scale.Instance{old("a"), old("b", grace)}},
			"update b a",
		},
		"in grace, old key": {
			"the key of before is read, too",
			scale.Input{
				Limits: limits, Instances: []scale.Instance{old("a"), old("b", annotated(kruise.InPlaceUpdateGraceKeyOld, "x"))},
			},
			"update b a",
		},
		"in grace, empty": {
			"an empty annotation is no grace period",
			scale.Input{
				Limits: limits, Instances: []scale.Instance{old("a"), old("b", annotated(kruise.InPlaceUpdateGraceKey, ""))},
			},
			"update a b",
		},
		"in grace, back": {
			"those taken back first restart nothing",
			scale.Input{
				Limits:    scale.Limits{Replicas: 2, Partition: 1, MaxUnavailable: 1},
				Instances: []scale.Instance{updated("a"), updated("b", grace)},
			},
			"update b back",
		},
		"in grace, no place": {
			"its place is spent already",
			scale.Input{
				Limits:    scale.Limits{Replicas: 2, MaxUnavailable: 1},
				Instances: []scale.Instance{old("a"), old("b", grace, notReady)},
			},
			"update b (UpdateLimited)",
		},
		"paused": {
			"until it goes on",
			scale.Input{Limits: limits, Updates: scale.UpdatesPaused, Instances: []scale.Instance{old("a"), old("b")}},
			"(Paused)",
		},
		"paused, converged": {
			"there is nothing to say",
			scale.Input{Limits: limits, Updates: scale.UpdatesPaused, Instances: []scale.Instance{updated("a"), updated("b")}},
			"",
		},
		"an unknown way": {
			"is the default",
			scale.Input{Limits: limits, Updates: "Someday", Instances: []scale.Instance{old("a"), old("b")}},
			"update a b",
		},
		"back": {
			"to the partition",
			scale.Input{
				Limits:    scale.Limits{Replicas: 2, Partition: 1, MaxUnavailable: 1},
				Instances: []scale.Instance{updated("a"), updated("b")},
			},
			"update a back",
		},
		"back, no budget": {
			"nothing moves",
			scale.Input{
				Limits: scale.Limits{Replicas: 2, Partition: 1}, Instances: []scale.Instance{updated("a"), updated("b")},
			},
			"(UpdateLimited)",
		},
		"back, off": {
			"they stay",
			scale.Input{
				Limits:    scale.Limits{Replicas: 2, Partition: 1, MaxUnavailable: 1, NoRollback: true},
				Instances: []scale.Instance{updated("a"), updated("b")},
			},
			"",
		},
		"a group being made": {
			"as a whole", scale.Input{Limits: limits, Instances: []scale.Instance{{Name: "a"}, updated("b")}}, "update a",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := story(compute(t, c.input)); got != c.want {
				t.Errorf("%s: want %q, got %q", c.why, c.want, got)
			}
		})
	}
}
