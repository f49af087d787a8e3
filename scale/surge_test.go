package scale_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// surge has names for it behind those of the slots.
func surge(n int32) option {
	return func(i *scale.Input) {
		i.Limits.MaxSurge = n
		for k := range 4 {
			i.SurgeSlots = append(i.SurgeSlots, fmt.Sprintf("web-%d", len(i.Slots)+k))
		}
	}
}

func TestSurgeOfSlots(t *testing.T) {
	one := []option{surge(1), unavailable(0)}
	testSlots(t, map[string]slotCase{
		"begins":     {"the surge instance comes first", "ooo", one, "create 3+"},
		"not yet":    {"it is not available", "ooo|N", one, "(UpdateLimited NotAvailable)"},
		"available":  {"one slot goes", "ooo|n", one, "update 2 (UpdateLimited)"},
		"one gone":   {"it comes back", "oo-|n", one, "create 2+"},
		"one broken": {"the others wait for it", "ooN|n", one, "(UpdateLimited NotAvailable)"},
		"the next":   {"one slot after the other", "oon|n", one, "update 1 (UpdateLimited)"},
		"the last":   {"the surge instance stays for it", "Nnn|n", one, "(NotAvailable)"},
		"done":       {"it goes", "nnn|n", one, "delete 3"},
		"converged":  {"none is left", "nnn", one, ""},
		"crashed later": {
			why: "no update needs a surge instance for that", slots: "nNn", options: one, want: "(NotAvailable)",
		},
		"to the partition": {
			why: "nothing is due", slots: "oon|n", options: append(one, keep(2)), want: "delete 3",
		},
		"any, to the partition": {
			why: "nothing is due", slots: "ono|n", options: append(one, keep(2), unordered), want: "delete 3",
		},
		"any": {"the partition lets one go", "ono", append(one, keep(1), unordered), "create 3+"},
		"paused, nothing begins": {
			why: "none comes", slots: "ooo", options: append(one, updates(scale.UpdatesPaused)), want: "(Paused)",
		},
		"paused": {
			why: "none is left behind", slots: "oon|n", options: append(one, updates(scale.UpdatesPaused)), want: "delete 3",
		},
		"paused, one is broken": {
			why:     "the surge instance makes up for it",
			slots:   "ooN|n",
			options: append(one, updates(scale.UpdatesPaused)),
			want:    "(DeleteLimited Paused NotAvailable)",
		},
		"paused, one may be": {
			why:     "the surge instance goes within the budget",
			slots:   "ooN|n",
			options: []option{surge(1), updates(scale.UpdatesPaused)},
			want:    "delete 3",
		},
		"on delete": {
			why: "the user deletes", slots: "oon|n", options: append(one, updates(scale.UpdatesOnDelete)), want: "delete 3",
		},
		"rolled back": {"it has the wrong revision", "nno|o", one, "delete 3"},
		"rolled back, one is broken": {
			why:     "the wrong one makes up for it, and what is broken goes back at once",
			slots:   "nnO|o",
			options: one,
			want:    "update 2 (DeleteLimited)",
		},
		"two":           {"no more than updates can use", "noo", []option{surge(3)}, "create 3+ 4+"},
		"two and one":   {"surge and budget", "oooo|nn", []option{surge(2)}, "update 3 2 1 (UpdateLimited)"},
		"at most":       {"the limit is lowered", "oooo|nn", one, "delete 5"},
		"at most, busy": {"both make up for slots", "ooNN|nn", one, "(DeleteLimited UpdateLimited NotAvailable)"},
		"at most, one is busy": {
			why: "one more than may be goes", slots: "oooN|nn", options: one, want: "delete 5",
		},
		"none any more": {"the limit is 0", "ooo|n", []option{surge(0)}, "delete 3"},
		"without names": {"they are instances without a slot", "ooN|nn", nil, "delete 4 3"},
		"chosen": {
			why: "another one comes for it", slots: "ooo|x", options: one, want: "delete 3",
		},
		"a slot is chosen": {
			why: "it goes as an update would", slots: "xnn", options: append(one, keep(1)), want: "create 3+",
		},
		"a slot is chosen, and has one": {
			why: "it goes", slots: "xnn|n", options: append(one, keep(1)), want: "delete 0",
		},
		"no place": {
			why:     "an instance without a slot takes it until it is gone",
			slots:   "ooo|---tt",
			options: one,
			want:    "(UpdateLimited WaitingForDeletion)",
		},
		"a name is taken": {"the next one is free", "ooo|t", []option{surge(2), unavailable(0)}, "create 4+"},
		"held by a hook": {
			why:   "it takes the place until it is gone",
			slots: "oon|p",
			options: append(one, preDelete(&kruise.LifecycleHook{LabelsHandler: map[string]string{
				kruise.LifecycleStateKey: "PreparingDelete",
			}})),
			want: "(Hooked UpdateLimited)",
		},
		"limited": {
			why:     "it counts as the others do",
			slots:   "oNo",
			options: append(one, scalingOut(1)),
			want:    "(ScaleUpLimited UpdateLimited NotAvailable)",
		},
		"creations fail": {"none comes", "oo", append(one, noCreate), "(UpdateLimited)"},
		"impaired":       {"it does not make up for a slot", "oo|i", one, "(UpdateLimited)"},
		"impaired, done": {"it goes, as it does not serve", "nN|i", []option{surge(0)}, "delete 2"},
	})
}

// TestSurgeSlotsThatAreSlots has replicas change in the middle of a rollout.
func TestSurgeSlotsThatAreSlots(t *testing.T) {
	input := slots("ooon")
	input.SurgeSlots, input.Limits.MaxSurge, input.Limits.MaxUnavailable = []string{"web-3", "web-4"}, 1, 0
	if got := story(compute(t, input)); got != "create web-4+" {
		t.Errorf("web-3 is a slot, and web-4 is not: got %s", got)
	}
	input.Slots = input.Slots[:3]
	if got := story(compute(t, input)); got != "update web-2 (UpdateLimited)" {
		t.Errorf("web-3 is no slot any more, and serves as surge: got %s", got)
	}
	input = slots("nnno")
	input.Slots, input.SurgeSlots = input.Slots[:3], []string{"web-3"}
	if got := story(compute(t, input)); got != "delete web-3" {
		t.Errorf("web-3 is no slot any more, and no update needs it: got %s", got)
	}
	for _, names := range [][]string{{"web-4", "web-4"}, {""}} {
		input.SurgeSlots = names
		var refused *scale.InputError
		if _, err := scale.Plan(input); !errors.As(err, &refused) || refused.Field != "SurgeSlots" {
			t.Errorf("%q: got %v", names, err)
		}
	}
}

// TestSurgeRollout carries plans out, with one slot updated at a time and never fewer available than slots.
func TestSurgeRollout(t *testing.T) {
	input := slots("ooo")
	surge(1)(&input)
	unavailable(0)(&input)
	var told []string
	for range 20 {
		plan := compute(t, input)
		if plan.Notes = nil; story(plan) != "" {
			told = append(told, strings.ReplaceAll(story(plan), "web-", ""))
		}
		gone := map[string]bool{}
		for _, i := range append(plan.Delete, plan.Update...) {
			gone[i.Name] = true
		}
		kept := input.Instances[:0:0]
		for _, i := range input.Instances {
			if !gone[i.Name] {
				kept = append(kept, i)
			}
		}
		for _, c := range plan.Create {
			i := old(c.Slot)
			i.Updated = c.Updated
			kept = append(kept, i)
		}
		if input.Instances = kept; len(kept) > 4 || len(kept) < 3 {
			t.Fatalf("%d instances after %v", len(kept), told)
		}
	}
	want := "create 3+, update 2, create 2+, update 1, create 1+, update 0, create 0+, delete 3"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// TestSurgeLastsToTheEnd carries plans out for instances that are alike. A new pod is ready after three seconds, every
// third one after four. The surge lasts until the last new pod exists.
func TestSurgeLastsToTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		limits  scale.Limits
		inPlace bool
		// seconds are 15, 15 and 11 where the surge is what the update revision lacks.
		seconds int
	}{
		"recreated":      {scale.Limits{Replicas: 10, MaxSurge: 3}, false, 13},
		"in place":       {scale.Limits{Replicas: 10, MaxSurge: 3}, true, 13},
		"to a partition": {scale.Limits{Replicas: 10, MaxSurge: 3, Partition: 5}, false, 8},
	} {
		r := &rollout{input: scale.Input{Limits: c.limits, Instances: instances(t, "10O")}, inPlace: c.inPlace}
		for !converged(r.input) && r.second < 100 {
			for plan := compute(t, r.input); len(plan.Create)+len(plan.Delete)+len(plan.Update) > 0; plan = compute(t, r.input) {
				r.carryOut(plan)
				if len(r.input.Instances) > 13 || r.available() < 10 {
					t.Fatalf("%s: %d of %d are available after %s", name, r.available(), len(r.input.Instances), story(plan))
				}
			}
			r.tick()
		}
		if r.second != c.seconds {
			t.Errorf("%s: took %d seconds, want %d", name, r.second, c.seconds)
		}
	}
}

// rollout carries out plans at once.
type rollout struct {
	input   scale.Input
	inPlace bool
	// second is the time, and ready is when a pod that was created or updated is ready. begun counts these.
	second, begun int
	ready         map[string]int
}

func (r *rollout) available() (n int) {
	for _, i := range r.input.Instances {
		n += int(truth(isReady(i.Pods[0])))
	}
	return n
}

func (r *rollout) tick() {
	r.second++
	for _, i := range r.input.Instances {
		if r.ready[i.Name] == r.second {
			i.Pods[0].Status.Conditions[0].Status = corev1.ConditionTrue
		}
	}
}

func (r *rollout) begin(i *scale.Instance, updated bool) {
	if r.begun++; r.ready == nil {
		r.ready = map[string]int{}
	}
	i.Updated, r.ready[i.Name] = updated, r.second+3+r.begun%3/2
	notReady(i.Pods[0])
}

func (r *rollout) carryOut(plan scale.Result) {
	gone, updates := names(plan.Delete), names(plan.Update)
	r.input.Instances = slices.DeleteFunc(r.input.Instances, func(i scale.Instance) bool {
		return strings.Contains(gone, i.Name)
	})
	for k := range r.input.Instances {
		switch i := &r.input.Instances[k]; {
		case !strings.Contains(updates, i.Name):
		case r.inPlace:
			r.begin(i, true)
		default:
			i.MarkedForDeletion = true
		}
	}
	for _, c := range plan.Create {
		i := old(fmt.Sprintf("new-%02d", r.begun))
		r.begin(&i, c.Updated)
		r.input.Instances = append(r.input.Instances, i)
	}
}
