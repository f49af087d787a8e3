package advancedcronjob_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// world is an object of which a user, its children and faults do something at random at each turn.
type world struct {
	*model

	rand   *rand.Rand
	job    *v1beta1.AdvancedCronJob
	cache  *apiserver.Lagging
	faults *podbench.Chance
	// had are the names of all children that ever were, and last is the last tick of the status.
	had  map[string]bool
	last time.Time
	// ran is how many children were created.
	ran int
}

// Whatever happens, no tick has two children, the last tick does not decrease, a rule of concurrency holds at each
// creation, the history has its limits, and the schedule goes on once the faults end.
func TestRandom(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := &world{
				model: newModel(t, allKinds()[seed%3]), rand: rand.New(rand.NewPCG(seed, 1)), had: map[string]bool{},
				faults: &podbench.Chance{Seed: seed, Of: 10, Each: true},
			}
			policies := []v1beta1.ConcurrencyPolicy{v1beta1.ForbidConcurrent, v1beta1.ReplaceConcurrent, v1beta1.AllowConcurrent}
			if w.kind == v1beta1.ImageListPullJobTemplate {
				policies = policies[:2]
			}
			w.job = w.create("web", policy(policies[w.rand.IntN(len(policies))]),
				history(int32(w.rand.IntN(3)), int32(w.rand.IntN(3))))
			if w.rand.IntN(2) == 0 {
				w.change(w.job, deadline(int64(100+w.rand.IntN(400))))
			}
			w.reboot()
			for range 80 {
				w.act()
				w.turn()
			}
			w.settle()
		})
	}
}

// reboot starts another process behind a client that fails at random, and a cache that lags.
func (w *world) reboot() {
	w.Helper()
	w.cache = w.Server.Lagging()
	w.restart(podbench.Writes(w.cache, w.faults.Do))
}

// act is what the user, a child or a fault does.
func (w *world) act() {
	w.Helper()
	children := w.children()
	running := slices.DeleteFunc(slices.Clone(children), func(c *unstructured.Unstructured) bool { return !isActive(c) })
	switch w.rand.IntN(16) {
	case 0, 1, 2, 3, 4:
		if len(running) > 0 {
			w.end(running[w.rand.IntN(len(running))], w.rand.IntN(2) == 0)
		}
	case 5:
		// One that is deleted before its tick is recorded may be created again.
		if children = slices.DeleteFunc(children, w.unrecorded); len(children) > 0 {
			if err := w.Server.Delete(w.Context(), children[w.rand.IntN(len(children))]); err != nil {
				w.Fatal(err)
			}
		}
	case 6:
		w.change(w.job, paused(w.rand.IntN(3) == 0))
	case 7:
		w.change(w.job, history(int32(w.rand.IntN(3)), int32(w.rand.IntN(3))))
	case 8:
		w.reboot()
	case 9:
		if w.cache.IsFrozen() {
			w.cache.Thaw()
		} else {
			w.cache.Freeze()
		}
	case 10:
		w.Advance(2 * time.Hour)
	}
}

// turn is a pass, and what must hold after it.
func (w *world) turn() {
	w.Helper()
	before := w.children()
	w.Server.Requests()
	w.Reconcile()
	created := 0
	for _, request := range w.Server.Requests() {
		fields := strings.Fields(request)
		if fields[0] != "POST" || fields[2] != "201" {
			continue
		}
		if created++; w.had[fields[1]] {
			w.Errorf("at %s %s is created twice", w.Clock, fields[1])
		}
		w.had[fields[1]] = true
		w.ran++
	}
	w.check(before, created)
	w.Advance(time.Duration(w.rand.IntN(200)) * time.Second)
}

func (w *world) check(before []*unstructured.Unstructured, created int) {
	w.Helper()
	w.look(w.job)
	if created > 1 {
		w.Errorf("at %s %d children are created", w.Clock, created)
	}
	if t := w.job.Status.LastScheduleTime; t == nil && !w.last.IsZero() || t != nil && t.Time.Before(w.last) {
		w.Errorf("at %s the last tick %v is before %s", w.Clock, t, w.last)
	} else if t != nil {
		w.last = t.Time
	}
	active := 0
	for _, c := range w.children() {
		if isActive(c) {
			active++
		}
	}
	wasActive := slices.ContainsFunc(before, isActive)
	switch {
	case created == 0:
	case w.job.Spec.ConcurrencyPolicy == v1beta1.ForbidConcurrent && wasActive:
		w.Errorf("at %s a child is created beside another one", w.Clock)
	case w.job.Spec.ConcurrencyPolicy != v1beta1.AllowConcurrent && active > 1:
		w.Errorf("at %s %d children are active", w.Clock, active)
	case ptr.Deref(w.job.Spec.Paused, false) && !w.cache.IsFrozen():
		w.Errorf("at %s a child is created in a pause", w.Clock)
	}
}

// settle expects another child, and a history within its limits, without another fault.
func (w *world) settle() {
	w.Helper()
	w.faults.Of = 0
	w.cache.Thaw()
	w.change(w.job, paused(false))
	ran := w.ran
	for range 20 {
		for _, c := range w.children() {
			if isActive(c) {
				w.end(c, true)
			}
		}
		w.turn()
	}
	if w.ran == ran {
		w.Errorf("the schedule has stopped: status %+v", w.job.Status)
	}
	for range 5 { // what is left to do now
		w.Reconcile()
	}
	well, failed := 0, 0
	for _, c := range w.children() {
		if text := fmt.Sprint(c.Object["status"]); strings.Contains(text, "Failed") || strings.Contains(text, "succeeded:1") {
			failed++
		} else if !isActive(c) {
			well++
		}
	}
	if well > int(*w.job.Spec.SuccessfulJobsHistoryLimit) || failed > int(*w.job.Spec.FailedJobsHistoryLimit) {
		w.Errorf("%d and %d finished children stay of %d and %d",
			well, failed, *w.job.Spec.SuccessfulJobsHistoryLimit, *w.job.Spec.FailedJobsHistoryLimit)
	}
}

func (w *world) unrecorded(c *unstructured.Unstructured) bool {
	w.look(w.job)
	last := w.job.Status.LastScheduleTime
	return last == nil || clock(c.GetAnnotations()[v1beta1.AdvancedCronJobScheduledAtKey]).After(last.Time)
}

func isActive(c *unstructured.Unstructured) bool {
	text := fmt.Sprint(c.Object["status"])
	return !strings.Contains(text, "Complete") && !strings.Contains(text, "Failed") &&
		!strings.Contains(text, "completionTime")
}
