package scale_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// numbers are cases in the form of stories: what happens to whom, and the codes of the notes.
type numbers = map[string]struct {
	why   string
	input scale.Input
	want  string
}

func testNumbers(t *testing.T, cases numbers) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := story(compute(t, c.input)); got != c.want {
				t.Errorf("%s: want %q, got %q", c.why, c.want, got)
			}
		})
	}
}

func limits(replicas, unavailable, scaling int32) scale.Limits {
	return scale.Limits{Replicas: replicas, MaxUnavailable: unavailable, MaxUnavailableScaling: ptr.To(scaling)}
}

func TestComputeCreates(t *testing.T) {
	testNumbers(t, numbers{
		"nothing": {"wanted and there are none", scale.Input{}, ""},
		"converged": {
			"nothing to do, nothing to say", scale.Input{Limits: limits(3, 1, noLimit), Instances: instances(t, "3N")}, "",
		},
		"first of all": {
			"no more than may be unavailable", scale.Input{Limits: limits(5, 1, 2)}, "create + + (ScaleUpLimited)",
		},
		"one not ready": {
			"it takes one of the places",
			scale.Input{Limits: limits(6, 1, 2), Instances: instances(t, "2N 1N!")},
			"create + (ScaleUpLimited)",
		},
		"two not ready": {
			"no place is left",
			scale.Input{Limits: limits(6, 1, 2), Instances: instances(t, "1N 2N!")},
			"(ScaleUpLimited NotAvailable)",
		},
		"the current revision": {
			"up to the partition",
			scale.Input{Limits: scale.Limits{Replicas: 4, Partition: 3}, Instances: instances(t, "1N 1O")},
			"create  ",
		},
		"creation stands still": {
			"updates go on",
			scale.Input{Limits: limits(5, 3, 1), Instances: instances(t, "3O 1O!")},
			"update 03O 00O (ScaleUpLimited UpdateLimited)",
		},
		"a deletion that holds up creation": {
			"is finished: nothing would ever go on else",
			scale.Input{Limits: limits(5, 1, 1), Instances: instances(t, "1Npx 3N")},
			"delete 00N (ScaleUpLimited)",
		},
		"terminating": {
			"it counts no more",
			scale.Input{
				Limits: limits(1, 0, noLimit), Instances: []scale.Instance{{Name: "a", Updated: true, Terminating: true}},
			},
			"create +",
		},
		"only updates": {
			"scaling failed",
			scale.Input{Limits: limits(5, 3, noLimit), UpdateOnly: true, Instances: instances(t, "4O")},
			"update 00O 01O (UpdateLimited)",
		},
	})
}

func TestComputeDeletes(t *testing.T) {
	testNumbers(t, numbers{
		"ready for too short": {
			"surplus ones stay while the others are not available",
			scale.Input{Limits: limits(3, 1, noLimit), MinReadySeconds: 9999, Instances: instances(t, "5N")},
			"(DeleteLimited NotAvailable)",
		},
		"ready": {
			"surplus ones go", scale.Input{Limits: limits(3, 1, noLimit), Instances: instances(t, "5N")}, "delete 00N 01N",
		},
		"a doomed surplus": {
			"it goes first, and alone",
			scale.Input{Limits: limits(3, 1, noLimit), Instances: instances(t, "4N 1Nx")},
			"delete 04N (WaitingForDeletion)",
		},
		"doomed ones": {
			"those that are not ready go at once, and they cost the others their budget",
			scale.Input{Limits: limits(4, 1, noLimit), Instances: instances(t, "2N!x 1Nx 2N")},
			"delete 00N 01N (DeleteLimited)",
		},
	})
}

// TestComputeHeld has instances that a hook holds before their deletion.
func TestComputeHeld(t *testing.T) {
	hook := &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}}}
	marking := &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{MarkPodNotReady: true}}
	held := func(notation string) []scale.Instance {
		all := instances(t, notation)
		labelled("hold", "yes")(all[0].Pods[0])
		return all
	}
	testNumbers(t, numbers{
		"held": {
			"it stays, counts, and surplus ones wait for it",
			scale.Input{Limits: limits(2, 1, noLimit), Hooks: hook, Instances: held("1Npx 3N")},
			"(Hooked WaitingForDeletion)",
		},
		"released": {
			"it goes without a budget",
			scale.Input{Limits: limits(3, 0, noLimit), Hooks: hook, Instances: instances(t, "1Npx 2N!")},
			"delete 00N",
		},
		"wanted again": {
			"the deletion is taken back",
			scale.Input{Limits: limits(3, 0, noLimit), Hooks: hook, Instances: held("1Np 2N")},
			"restore 00N",
		},
		"wanted again, but doomed": {
			"the user's choice stands",
			scale.Input{Limits: limits(3, 0, noLimit), Hooks: hook, Instances: held("1Npx 2N")},
			"(Hooked)",
		},
		"wanted again, but out of use": {
			"a hook has made it not ready, so it goes",
			scale.Input{Limits: limits(3, 0, noLimit), Hooks: marking, Instances: instances(t, "1Np 2N")},
			"delete 00N",
		},
		"as many as are missing": {
			"the best is taken back",
			scale.Input{Limits: limits(3, 0, noLimit), Hooks: hook, Instances: []scale.Instance{
				updated("a", in(kruise.LifecycleStatePreparingDelete)),
				updated("b", in(kruise.LifecycleStatePreparingDelete), notReady),
				updated("c", in(kruise.LifecycleStatePreparingDelete), readySince(2*time.Hour)), updated("d"), updated("e"),
			}},
			"restore c",
		},
	})
}

func TestComputeOnDelete(t *testing.T) {
	on := func(replicas int32, notation string) scale.Input {
		return scale.Input{
			Instances: instances(t, notation), Updates: scale.UpdatesOnDelete,
			Limits: scale.Limits{Replicas: replicas, MaxUnavailable: 1},
		}
	}
	testNumbers(t, numbers{
		"a new revision":         {"no pod is updated", on(5, "5O"), "(OnDelete)"},
		"two deleted":            {"they come back updated", on(5, "3O"), "create + +"},
		"fewer":                  {"old ones go first", on(3, "3O 2N"), "delete 00O 01O"},
		"fewer, some stay old":   {"old ones go first", on(6, "3O 5N"), "delete 00O 01O"},
		"fewer than are updated": {"updated ones go, too", on(4, "3O 5N"), "delete 00O 01O 02O 03N"},
		"more":                   {"they are updated", on(4, "3O"), "create +"},
	})
}

// TestComputePreparing has instances that a hook holds before their update count as updated, while scaling only.
func TestComputePreparing(t *testing.T) {
	hooks := &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{FinalizersHandler: []string{"held"}}}
	all := instances(t, "1Ou 1O")
	all[0].Pods[0].Finalizers = []string{"held"}
	input := scale.Input{
		Hooks: hooks, Instances: all, PreparingUpdateIsUpdated: true,
		Limits: scale.Limits{Replicas: 2, Partition: 1, MaxUnavailable: 1},
	}
	step := func(why, want string) {
		t.Helper()
		if got := story(compute(t, input)); got != want {
			t.Errorf("%s: want %q, got %q", why, want, got)
		}
	}
	step("the held one is the one to update", "update 00O (Hooked Partition)")
	input.Instances = all[:1]
	step("the other is deleted, and comes back old", "create ")
	input.Instances = all
	input.Limits.Replicas, input.Limits.Partition = 3, 2
	step("one more is old", "create ")
	input.Limits.Replicas, input.Limits.Partition, input.Limits.MaxUnavailable = 2, 0, 2
	step("without a partition the other is updated, too", "update 00O 01O (Hooked)")
	input.PreparingUpdateIsUpdated, input.Limits.Partition = false, 1
	input.Instances = all[:1]
	step("a held one counts as old else", "create +")
}

func TestComputeTellsWhenToLookAgain(t *testing.T) {
	input := scale.Input{MinReadySeconds: 60, Limits: scale.Limits{Replicas: 3}, Instances: []scale.Instance{
		updated("a", readySince(20*time.Second)), updated("b", readySince(50*time.Second)), updated("c", notReady),
	}}
	plan := compute(t, input)
	if plan.RequeueAfter != 10*time.Second || codes(plan) != scale.NoteNotAvailable {
		t.Errorf("b is the first to be available, in 10s: got %v, %v", plan.RequeueAfter, plan.Notes)
	}
	input.Instances[1].Pods = append(input.Instances[1].Pods, pod("b-1", readySince(30*time.Second)))
	input.Instances[1].Size = 2
	if got := compute(t, input).RequeueAfter; got != 30*time.Second {
		t.Errorf("the last pod of b is available in 30s: got %v", got)
	}
	input.Instances[1].Size = 3
	if got := compute(t, input).RequeueAfter; got != 40*time.Second {
		t.Errorf("b is not whole, so a is the first, in 40s: got %v", got)
	}
}

// TestComputeSurvivesATypingError has two billion replicas wanted.
func TestComputeSurvivesATypingError(t *testing.T) {
	plan := compute(t, scale.Input{
		Limits:    scale.Limits{Replicas: noLimit, MaxSurge: noLimit, MaxUnavailable: noLimit},
		Instances: instances(t, "1O 1N"),
	})
	if n := len(plan.Create); n == 0 || n > 1<<16 || len(plan.Delete) > 0 {
		t.Errorf("so many at a time: got %d, and %d deleted", n, len(plan.Delete))
	}
	if n := plan.Difference.CreateMissing; n != noLimit-2 {
		t.Errorf("all but two are missing, and there is no room for surplus ones: got %d", n)
	}
	if codes(plan) != scale.NoteScaleUpLimited {
		t.Errorf("the rest waits: got %v", plan.Notes)
	}
}

func TestPlanRefuses(t *testing.T) {
	for why, c := range map[string]struct {
		input scale.Input
		want  string
	}{
		"an instance has no name": {
			scale.Input{Instances: []scale.Instance{old("")}, Slots: []string{"a"}}, "Instances must have a name each",
		},
		"two instances for one slot": {
			scale.Input{Instances: []scale.Instance{old("a"), old("a")}, Slots: []string{"a"}},
			"Instances must have a name each",
		},
		"two instances of one name without slots": {
			scale.Input{Instances: []scale.Instance{old("a"), old("a")}}, "Instances must have a name each",
		},
		"a slot has no name": {
			scale.Input{Slots: []string{"a", ""}}, `Slots must not have "" twice, nor an empty name`,
		},
		"two slots have the same": {
			scale.Input{Slots: []string{"a", "a"}}, `Slots must not have "a" twice, nor an empty name`,
		},
	} {
		_, err := scale.Plan(c.input)
		var refused *scale.InputError
		if !errors.As(err, &refused) || err.Error() != c.want {
			t.Errorf("%s: want %q, got %v", why, c.want, err)
		}
	}
}
