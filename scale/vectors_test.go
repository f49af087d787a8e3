package scale_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/scale"
)

type bounds struct {
	replicas                          int32
	partition, unavailable, surge     string
	noRollback, paused, forgetLeaving bool
}

type vectors = map[string]struct {
	why       string
	limits    bounds
	instances string
	want      scale.Difference
}

func TestDifference(t *testing.T) {
	testDifference(t, vectors{
		"a doomed one":                        {"the budget is its own", bounds{5, "0", "1", "0", false, false, false}, "1Nx 4N", scale.Difference{DeleteAvailable: 1}},
		"two doomed":                          {"one at a time", bounds{5, "0", "1", "0", false, false, false}, "2Nx 3N", scale.Difference{DeleteAvailable: 1}},
		"a doomed one, and one missing":       {"what is missing comes first", bounds{5, "0", "1", "0", false, false, false}, "1Nx 3N", scale.Difference{Create: 1, CreateMissing: 1}},
		"a doomed one, and one unavailable":   {"no budget is left", bounds{5, "0", "1", "0", false, false, false}, "1Nx 3N 1N!", scale.Difference{}},
		"two broken and doomed, one too many": {"the surplus is budget", bounds{4, "0", "1", "0", false, false, false}, "2N!x 3N", scale.Difference{DeleteAvailable: 2}},

		"a rollout begins":        {"to the partition", bounds{5, "3", "1", "0", false, false, false}, "5O", scale.Difference{Update: 2, UpdateUnavailable: 1}},
		"a rollout, half":         {"one left", bounds{5, "3", "1", "0", false, false, false}, "1N 4O", scale.Difference{Update: 1, UpdateUnavailable: 1}},
		"a rollout, done":         {"nothing left", bounds{5, "3", "1", "0", false, false, false}, "2N 3O", scale.Difference{}},
		"the partition is raised": {"some go back", bounds{5, "4", "2", "0", false, false, false}, "4N 1O", scale.Difference{Update: -3, UpdateUnavailable: 2}},
		"without rollback":        {"none goes back", bounds{5, "4", "1", "0", true, false, false}, "4N 1O", scale.Difference{}},
	})
}

func TestDifferenceWithSurge(t *testing.T) {
	testDifference(t, vectors{
		"surge for a doomed one":        {"its successor comes first", bounds{5, "0", "0", "1", false, false, false}, "1Nx 4N", scale.Difference{Create: 1, CreateMissing: 1}},
		"its successor is there":        {"and not available", bounds{5, "0", "0", "1", false, false, false}, "1Nx 4N 1N!", scale.Difference{}},
		"its successor is available":    {"so it goes", bounds{5, "0", "0", "1", false, false, false}, "1Nx 5N", scale.Difference{DeleteAvailable: 1}},
		"surge":                         {"one more, and one at once", bounds{5, "3", "1", "1", false, false, false}, "5O", scale.Difference{Create: 1, CreateMissing: 1, Update: 2, UpdateUnavailable: 1}},
		"surge, one there":              {"it is budget", bounds{5, "3", "1", "1", false, false, false}, "5O 1N!", scale.Difference{Update: 1, UpdateUnavailable: 2}},
		"surge, and an old one doomed":  {"surge is for it", bounds{5, "3", "1", "1", false, false, false}, "4O 1Ox 1N!", scale.Difference{DeleteAvailable: 1, Update: 1, UpdateUnavailable: 2}},
		"surge, an old one went":        {"one more comes", bounds{5, "3", "1", "1", false, false, false}, "4O 1N!", scale.Difference{Create: 1, CreateMissing: 1, Update: 1, UpdateUnavailable: 1}},
		"surge, all new ones there":     {"an old one goes, later", bounds{5, "3", "1", "1", false, false, false}, "4O 2N!", scale.Difference{Delete: 1, DeleteOld: 1}},
		"surge, a new one is available": {"an old one goes, now", bounds{5, "3", "1", "1", false, false, false}, "4O 1N 1N!", scale.Difference{Delete: 1, DeleteOld: 1, DeleteAvailable: 1}},
		"surge, done":                   {"nothing left", bounds{5, "3", "1", "1", false, false, false}, "3O 2N", scale.Difference{}},
		"percentages":                   {"99% lets one through", bounds{5, "99%", "40%", "30%", false, false, false}, "5O", scale.Difference{Create: 1, CreateMissing: 1, Update: 1, UpdateUnavailable: 2}},
		"percentages, one there":        {"surplus", bounds{5, "99%", "40%", "30%", false, false, false}, "5O 1N!", scale.Difference{Delete: 1, DeleteOld: 1, DeleteAvailable: 2}},
		"percentages down":              {"with surge they round down", bounds{5, "99%", "30%", "30%", false, false, false}, "5O", scale.Difference{Create: 1, CreateMissing: 1, Update: 1, UpdateUnavailable: 1}},
		"percentages down, one there":   {"with surge they round down", bounds{5, "99%", "30%", "30%", false, false, false}, "5O 1N!", scale.Difference{Delete: 1, DeleteOld: 1, DeleteAvailable: 1}},
	})
}

func TestDifferenceInSpecialCases(t *testing.T) {
	testDifference(t, vectors{
		"one revision":                     {"there is no other to go back to", bounds{5, "3", "1", "0", true, false, false}, "5N", scale.Difference{}},
		"one revision, one missing":        {"it is created, and one updated", bounds{5, "1", "2", "0", true, false, false}, "2O 2N", scale.Difference{Create: 1, CreateMissing: 1, Update: 1, UpdateUnavailable: 1}},
		"one revision, one too many":       {"an old one goes", bounds{5, "1", "1", "0", true, false, false}, "3O 3N", scale.Difference{Delete: 1, DeleteOld: 2, DeleteAvailable: 2, Update: 1, UpdateUnavailable: 2}},
		"a leaving one is forgotten":       {"so one is missing", bounds{3, "0", "1", "0", false, false, true}, "2N 1Npx", scale.Difference{Create: 1, CreateMissing: 1}},
		"a leaving one counts":             {"so none is missing", bounds{3, "0", "1", "0", false, false, false}, "2N 1Npx", scale.Difference{}},
		"paused, missing":                  {"no surge", bounds{5, "0", "0", "3", false, true, false}, "3O", scale.Difference{Create: 2, CreateMissing: 2, Update: 3, UpdateUnavailable: -2}},
		"paused, too many":                 {"no surge", bounds{3, "0", "0", "3", false, true, false}, "5O", scale.Difference{Delete: 2, DeleteOld: 5, DeleteAvailable: 2, Update: 3, UpdateUnavailable: 2}},
		"paused, too many, none available": {"no surge", bounds{5, "2", "0", "3", false, true, false}, "5O 3N!", scale.Difference{Delete: 3, DeleteOld: 3}},
	})
}

// testDifference has counts of instances as Compute gets them, and what separates them from the wanted ones.
func testDifference(t *testing.T, cases vectors) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			input := scale.Input{Instances: instances(t, c.instances), Limits: scale.Limits{
				Replicas:   c.limits.replicas,
				NoRollback: c.limits.noRollback, ExcludePreparingDelete: c.limits.forgetLeaving,
			}}
			if c.limits.paused {
				input.Updates = scale.UpdatesPaused
			}
			input.Limits.MaxSurge = amount(t, c.limits.surge, c.limits.replicas, bool(scale.RoundUp))
			input.Limits.MaxUnavailable = amount(t, c.limits.unavailable, c.limits.replicas, input.Limits.MaxSurge > 0)
			p := intstr.Parse(c.limits.partition)
			partition, err := scale.Partition(&p, c.limits.replicas)
			if err != nil {
				t.Fatal(err)
			}
			input.Limits.Partition = partition
			if diff := cmp.Diff(c.want, compute(t, input).Difference); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", c.instances, c.why, diff)
			}
		})
	}
}

func amount(t *testing.T, text string, total int32, down bool) int32 {
	t.Helper()
	n, err := scale.Amount(intstr.Parse(text), total, scale.Rounding(down))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
