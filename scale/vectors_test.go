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
		"a doomed one": {
			why:       "the budget is its own",
			limits:    bounds{5, "0", "1", "0", false, false, false},
			instances: "1Nx 4N",
			want:      scale.Difference{DeleteAvailable: 1},
		},
		"two doomed": {
			why:       "one at a time",
			limits:    bounds{5, "0", "1", "0", false, false, false},
			instances: "2Nx 3N",
			want:      scale.Difference{DeleteAvailable: 1},
		},
		"a doomed one, and one missing": {
			why:       "what is missing comes first",
			limits:    bounds{5, "0", "1", "0", false, false, false},
			instances: "1Nx 3N",
			want:      scale.Difference{Create: 1, CreateMissing: 1},
		},
		"a doomed one, and one unavailable": {
			why:       "no budget is left",
			limits:    bounds{5, "0", "1", "0", false, false, false},
			instances: "1Nx 3N 1N!",
			want:      scale.Difference{},
		},
		"two broken and doomed, one too many": {
			why:       "the surplus is budget",
			limits:    bounds{4, "0", "1", "0", false, false, false},
			instances: "2N!x 3N",
			want:      scale.Difference{DeleteAvailable: 2},
		},

		"a rollout begins": {
			why:       "to the partition",
			limits:    bounds{5, "3", "1", "0", false, false, false},
			instances: "5O",
			want:      scale.Difference{Update: 2, UpdateUnavailable: 1},
		},
		"a rollout, half": {
			why:       "one left",
			limits:    bounds{5, "3", "1", "0", false, false, false},
			instances: "1N 4O",
			want:      scale.Difference{Update: 1, UpdateUnavailable: 1},
		},
		"a rollout, done": {
			why:       "nothing left",
			limits:    bounds{5, "3", "1", "0", false, false, false},
			instances: "2N 3O",
			want:      scale.Difference{},
		},
		"the partition is raised": {
			why:       "some go back",
			limits:    bounds{5, "4", "2", "0", false, false, false},
			instances: "4N 1O",
			want:      scale.Difference{Update: -3, UpdateUnavailable: 2},
		},
		"without rollback": {
			why:       "none goes back",
			limits:    bounds{5, "4", "1", "0", true, false, false},
			instances: "4N 1O",
			want:      scale.Difference{},
		},
	})
}

func TestDifferenceWithSurge(t *testing.T) {
	testDifference(t, vectors{
		"surge for a doomed one": {
			why:       "its successor comes first",
			limits:    bounds{5, "0", "0", "1", false, false, false},
			instances: "1Nx 4N",
			want:      scale.Difference{Create: 1, CreateMissing: 1},
		},
		"its successor is there": {
			why:       "and not available",
			limits:    bounds{5, "0", "0", "1", false, false, false},
			instances: "1Nx 4N 1N!",
			want:      scale.Difference{},
		},
		"its successor is available": {
			why:       "so it goes",
			limits:    bounds{5, "0", "0", "1", false, false, false},
			instances: "1Nx 5N",
			want:      scale.Difference{DeleteAvailable: 1},
		},
		"surge": {
			why:       "one more, and one at once",
			limits:    bounds{5, "3", "1", "1", false, false, false},
			instances: "5O",
			want:      scale.Difference{Create: 1, CreateMissing: 1, Update: 2, UpdateUnavailable: 1},
		},
		"surge, one there": {
			why:       "it is budget",
			limits:    bounds{5, "3", "1", "1", false, false, false},
			instances: "5O 1N!",
			want:      scale.Difference{Update: 1, UpdateUnavailable: 2},
		},
		"surge, and an old one doomed": {
			why:       "surge is for it",
			limits:    bounds{5, "3", "1", "1", false, false, false},
			instances: "4O 1Ox 1N!",
			want:      scale.Difference{DeleteAvailable: 1, Update: 1, UpdateUnavailable: 2},
		},
		"surge, an old one went": {
			why:       "one more comes",
			limits:    bounds{5, "3", "1", "1", false, false, false},
			instances: "4O 1N!",
			want:      scale.Difference{Create: 1, CreateMissing: 1, Update: 1, UpdateUnavailable: 1},
		},
		"surge, all new ones there": {
			why:       "an old one goes, later",
			limits:    bounds{5, "3", "1", "1", false, false, false},
			instances: "4O 2N!",
			want:      scale.Difference{Delete: 1, DeleteOld: 1},
		},
		"surge, a new one is available": {
			why:       "an old one goes, now",
			limits:    bounds{5, "3", "1", "1", false, false, false},
			instances: "4O 1N 1N!",
			want:      scale.Difference{Delete: 1, DeleteOld: 1, DeleteAvailable: 1},
		},
		"surge, done": {
			why:       "nothing left",
			limits:    bounds{5, "3", "1", "1", false, false, false},
			instances: "3O 2N",
			want:      scale.Difference{},
		},
		"surge, late": {
			why:       "what is missing comes at once, as far as the surge reaches",
			limits:    bounds{10, "0", "0", "3", false, false, false},
			instances: "3O 7N 1N!",
			want:      scale.Difference{Create: 2, CreateMissing: 2, Update: 2, UpdateUnavailable: 1},
		},
		"surge, late, all of it there": {
			why:       "none goes while a new one is missing",
			limits:    bounds{10, "0", "0", "3", false, false, false},
			instances: "4O 9N",
			want:      scale.Difference{Update: 1, UpdateUnavailable: 3},
		},
		"surge, late, to the partition": {
			why:       "none goes while a new one is missing",
			limits:    bounds{10, "6", "0", "3", false, false, false},
			instances: "10O 3N!",
			want:      scale.Difference{Update: 1, UpdateUnavailable: 3},
		},
		"surge, late, back to the partition": {
			why:       "the last old one comes at once",
			limits:    bounds{10, "6", "0", "3", false, false, false},
			instances: "5O 7N",
			want:      scale.Difference{Create: 1, CreateMissing: 1, CreateOld: 4, Update: -1, UpdateUnavailable: 2},
		},
		"surge, no more needed": {
			why:       "all new ones are there, so the old ones go",
			limits:    bounds{10, "0", "0", "3", false, false, false},
			instances: "3O 10N",
			want:      scale.Difference{Delete: 3, DeleteOld: 3, DeleteAvailable: 3},
		},
		"percentages": {
			why:       "99% lets one through",
			limits:    bounds{5, "99%", "40%", "30%", false, false, false},
			instances: "5O",
			want:      scale.Difference{Create: 1, CreateMissing: 1, Update: 1, UpdateUnavailable: 2},
		},
		"percentages, one there": {
			why:       "surplus",
			limits:    bounds{5, "99%", "40%", "30%", false, false, false},
			instances: "5O 1N!",
			want:      scale.Difference{Delete: 1, DeleteOld: 1, DeleteAvailable: 2},
		},
		"percentages down": {
			why:       "with surge they round down",
			limits:    bounds{5, "99%", "30%", "30%", false, false, false},
			instances: "5O",
			want:      scale.Difference{Create: 1, CreateMissing: 1, Update: 1, UpdateUnavailable: 1},
		},
		"percentages down, one there": {
			why:       "with surge they round down",
			limits:    bounds{5, "99%", "30%", "30%", false, false, false},
			instances: "5O 1N!",
			want:      scale.Difference{Delete: 1, DeleteOld: 1, DeleteAvailable: 1},
		},
	})
}

func TestDifferenceInSpecialCases(t *testing.T) {
	testDifference(t, vectors{
		"one revision": {
			why:       "there is no other to go back to",
			limits:    bounds{5, "3", "1", "0", true, false, false},
			instances: "5N",
			want:      scale.Difference{},
		},
		"one revision, one missing": {
			why:       "it is created, and one updated",
			limits:    bounds{5, "1", "2", "0", true, false, false},
			instances: "2O 2N",
			want:      scale.Difference{Create: 1, CreateMissing: 1, Update: 1, UpdateUnavailable: 1},
		},
		"one revision, one too many": {
			why:       "an old one goes",
			limits:    bounds{5, "1", "1", "0", true, false, false},
			instances: "3O 3N",
			want:      scale.Difference{Delete: 1, DeleteOld: 2, DeleteAvailable: 2, Update: 1, UpdateUnavailable: 2},
		},
		"a leaving one is forgotten": {
			why:       "so one is missing",
			limits:    bounds{3, "0", "1", "0", false, false, true},
			instances: "2N 1Npx",
			want:      scale.Difference{Create: 1, CreateMissing: 1},
		},
		"a leaving one counts": {
			why:       "so none is missing",
			limits:    bounds{3, "0", "1", "0", false, false, false},
			instances: "2N 1Npx",
			want:      scale.Difference{},
		},
		"paused, missing": {
			why:       "no surge",
			limits:    bounds{5, "0", "0", "3", false, true, false},
			instances: "3O",
			want:      scale.Difference{Create: 2, CreateMissing: 2, Update: 3, UpdateUnavailable: -2},
		},
		"paused, too many": {
			why:       "no surge",
			limits:    bounds{3, "0", "0", "3", false, true, false},
			instances: "5O",
			want:      scale.Difference{Delete: 2, DeleteOld: 5, DeleteAvailable: 2, Update: 3, UpdateUnavailable: 2},
		},
		"paused, too many, none available": {
			why:       "no surge",
			limits:    bounds{5, "2", "0", "3", false, true, false},
			instances: "5O 3N!",
			want:      scale.Difference{Delete: 3, DeleteOld: 3},
		},
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
