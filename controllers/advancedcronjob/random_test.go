package advancedcronjob_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// world is an object of which a user, its children and faults do something at random at each turn.
type world struct {
	*model

	rand   *rand.Rand
	seed   uint64
	job    *v1beta1.AdvancedCronJob
	cache  *cache
	faulty bool
	// writes are how often each write was tried, and all of them, under the lock: writes are sent at the same time.
	mu     sync.Mutex
	writes map[string]uint64
	all    int
	// had are the names of all children that ever were, and last is the last tick of the status.
	had  map[string]bool
	last time.Time
	// ran is how many children were created.
	ran int
}

// Whatever happens, no tick has two children, the last tick does not decrease, a rule of concurrency holds at each creation, the history
// has its limits, and the schedule goes on once the faults end.
func TestRandom(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := &world{model: newModel(t, allKinds()[seed%3]), rand: rand.New(rand.NewPCG(seed, 1)), seed: seed, had: map[string]bool{}, writes: map[string]uint64{}, faulty: true}
			policies := []v1beta1.ConcurrencyPolicy{v1beta1.ForbidConcurrent, v1beta1.ReplaceConcurrent, v1beta1.AllowConcurrent}
			if w.kind == v1beta1.ImageListPullJobTemplate {
				policies = policies[:2]
			}
			w.job = w.create("web", policy(policies[w.rand.IntN(len(policies))]), history(int32(w.rand.IntN(3)), int32(w.rand.IntN(3))))
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
	w.cache = &cache{Client: w.Server, objects: map[string]*unstructured.Unstructured{}, lists: map[string]*unstructured.UnstructuredList{}}
	w.restart(podbench.Writes(watching{w.cache}, func(what string, write func() error) error {
		if !w.faulty {
			return write()
		}
		switch w.draw(what, 10) {
		case 0:
			return apierrors.NewInternalError(errors.New("not made"))
		case 1:
			_ = write()
			return apierrors.NewInternalError(errors.New("made, and the answer is lost"))
		case 2:
			return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "web", errors.New("a policy rejects it"))
		}
		return write()
	}))
}

// draw returns a number for a write that depends on the seed and on how often the write was tried, not on the order of concurrent writes. The
// first three writes have one fault of each kind.
func (w *world) draw(what string, n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes[what]++
	if w.all++; w.all <= 3 {
		return w.all - 1
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(what))
	return rand.New(rand.NewPCG(w.seed^hash.Sum64(), w.writes[what])).IntN(n)
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
		w.cache.frozen = !w.cache.frozen
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
	case ptr.Deref(w.job.Spec.Paused, false) && !w.cache.frozen:
		w.Errorf("at %s a child is created in a pause", w.Clock)
	}
}

// settle expects another child, and a history within its limits, without another fault.
func (w *world) settle() {
	w.Helper()
	w.faulty, w.cache.frozen = false, false
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
		w.Errorf("%d and %d finished children stay of %d and %d", well, failed, *w.job.Spec.SuccessfulJobsHistoryLimit, *w.job.Spec.FailedJobsHistoryLimit)
	}
}

func (w *world) unrecorded(c *unstructured.Unstructured) bool {
	w.look(w.job)
	last := w.job.Status.LastScheduleTime
	return last == nil || clock(c.GetAnnotations()[v1beta1.AdvancedCronJobScheduledAtKey]).After(last.Time)
}

func isActive(c *unstructured.Unstructured) bool {
	text := fmt.Sprint(c.Object["status"])
	return !strings.Contains(text, "Complete") && !strings.Contains(text, "Failed") && !strings.Contains(text, "completionTime")
}

// cache is a client whose untyped reads may lag: while it is frozen they return what they returned before.
type cache struct {
	client.Client

	frozen  bool
	objects map[string]*unstructured.Unstructured
	lists   map[string]*unstructured.UnstructuredList
}

func (c *cache) Get(ctx context.Context, name client.ObjectKey, into client.Object, o ...client.GetOption) error {
	raw, is := into.(*unstructured.Unstructured)
	if !is {
		return c.Client.Get(ctx, name, into, o...)
	}
	key := raw.GetKind() + name.String()
	if known := c.objects[key]; c.frozen && known != nil {
		known.DeepCopyInto(raw)
		return nil
	}
	if err := c.Client.Get(ctx, name, into, o...); err != nil {
		return err
	}
	c.objects[key] = raw.DeepCopy()
	return nil
}

func (c *cache) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	raw, is := into.(*unstructured.UnstructuredList)
	if !is {
		return c.Client.List(ctx, into, o...)
	}
	if known := c.lists[raw.GetKind()]; c.frozen && known != nil {
		known.DeepCopyInto(raw)
		return nil
	}
	if err := c.Client.List(ctx, into, o...); err != nil {
		return err
	}
	c.lists[raw.GetKind()] = raw.DeepCopy()
	return nil
}

// watching is a client that cannot watch.
type watching struct{ client.Client }

func (watching) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("no watch")
}
