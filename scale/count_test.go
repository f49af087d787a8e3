package scale_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// TestComputeNotes has plans that say why something waits. What plans do is compared with the oracle.
func TestComputeNotes(t *testing.T) {
	of := func(notation string, replicas, unavailable, scaling int32, options ...option) scale.Input {
		in := scale.Input{Instances: instances(t, notation), Limits: scale.Limits{
			Replicas: replicas, MaxUnavailable: unavailable, MaxUnavailableScaling: ptr.To(scaling),
		}}
		for _, o := range options {
			o(&in)
		}
		return in
	}
	held := func(i *scale.Input) { labelled("hold", "yes")(i.Instances[0].Pods[0]) }
	hook := preDelete(&kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}})
	broken := func(i *scale.Input) {
		i.Priority = &kruise.UpdatePriorityStrategy{WeightPriority: []kruise.UpdatePriorityWeightTerm{{
			Weight: 9, MatchSelector: metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "is", Operator: "Like"}},
			},
		}}}
	}
	oldGrace := func(i *scale.Input) { annotated(kruise.InPlaceUpdateGraceKeyOld, "x")(i.Instances[1].Pods[0]) }
	for why, c := range map[string]struct {
		input scale.Input
		want  string
	}{
		"a converged workload has nothing to say":        {of("3N", 3, 1, noLimit), ""},
		"one is created, since another one is not ready": {of("2N 1N!", 6, 1, 2), "create + (ScaleUpLimited)"},
		"none is created, since two are not ready":       {of("1N 2N!", 6, 1, 2), "(ScaleUpLimited NotAvailable)"},
		"updates go on where creation stands still": {
			of("3O 1O!", 5, 3, 1), "update 03O 00O (ScaleUpLimited UpdateLimited)",
		},
		"a deletion that holds up creation is finished": {of("1Npx 3N", 5, 1, 1), "delete 00N (ScaleUpLimited)"},
		"surplus ones stay while others are not available": {
			of("5N", 3, 1, noLimit, func(i *scale.Input) { i.MinReadySeconds = 9999 }), "(DeleteLimited NotAvailable)",
		},
		"a doomed surplus goes alone":              {of("4N 1Nx", 3, 1, noLimit), "delete 04N (WaitingForDeletion)"},
		"broken ones cost the others their budget": {of("2N!x 1Nx 2N", 4, 1, noLimit), "delete 00N 01N (DeleteLimited)"},
		"surplus ones wait for one that is held": {
			of("1Npx 3N", 2, 1, noLimit, hook, held), "(Hooked WaitingForDeletion)",
		},
		"a doomed one that is held is not restored": {of("1Npx 2N", 3, 0, noLimit, hook, held), "(Hooked)"},
		"no pod is updated on delete": {
			of("5O", 5, 1, noLimit, updates(scale.UpdatesOnDelete)), "(OnDelete)",
		},
		"paused":               {of("2O", 2, 2, noLimit, updates(scale.UpdatesPaused)), "(Paused)"},
		"paused and converged": {of("2N", 2, 2, noLimit, updates(scale.UpdatesPaused)), ""},
		"an unknown way of updates is the default": {of("2O", 2, 2, noLimit, updates("Someday")), "update 00O 01O"},
		"a broken selector is left out":            {of("2O", 2, 2, noLimit, broken), "update 00O 01O (PriorityIgnored)"},
		"a grace period under its old key":         {of("2O", 2, 2, noLimit, oldGrace), "update 01O 00O"},
		"no budget goes back":                      {of("2N", 2, 0, noLimit, keep(1)), "(UpdateLimited)"},
	} {
		if got := story(compute(t, c.input)); got != c.want {
			t.Errorf("%s: want %q, got %q", why, c.want, got)
		}
	}
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
