package workloadspread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/groupcommit"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// Request is a pod that is being created.
type Request struct {
	Namespace string
	Pod       *corev1.Pod
	// UID of the admission request stands for a pod without a name.
	UID types.UID
	// Review takes the pod as its subset makes it, nil for as it is, through what may still refuse the pod. Only then the
	// pod is recorded. It is called again where the pod gets another subset meanwhile. Nil refuses nothing.
	Review func(ctx context.Context, pod *corev1.Pod) error
}

// PatchError is a patch of a subset that cannot be applied to a pod.
type PatchError struct {
	// Spread is the name of the WorkloadSpread.
	Spread string
	Err    error
}

// Error names the WorkloadSpread.
func (e *PatchError) Error() string { return fmt.Sprintf("WorkloadSpread %s: %v", e.Spread, e.Err) }

// Unwrap returns the reason.
func (e *PatchError) Unwrap() error { return e.Err }

// choice is what is decided about a pod.
type choice struct {
	// spread that the subset is of.
	spread *subset.Spread
	// subset of the pod; nil where there is none.
	subset *subset.Subset
	// uid of a pod without a name.
	uid string
	// final reports that the pod is recorded, or needs no record.
	final bool
}

// Admit returns the pod with what its subset adds; nil where the pod stays as it is. An error is about a lookup, a
// *PatchError, or that of the review. A pod that is refused leaves no record.
func (d *Allocator) Admit(ctx context.Context, r Request) (*corev1.Pod, error) {
	if !d.lookups.Spreads.Any(r.Namespace) || !subset.Active(r.Pod) {
		return nil, nil
	}
	ws, err := d.find(ctx, r.Namespace, r.Pod)
	if err != nil || ws == nil {
		return nil, err
	}
	earlier := subset.Earlier(ws, r.Pod)
	if target, _ := TargetOf(ws); !isStatefulSet(target) {
		return d.recorded(ctx, ws, r, earlier)
	} else if earlier == nil {
		if earlier, err = d.byOrdinal(ctx, ws, target, r); err != nil {
			return nil, err
		}
	}
	return choice{spread: ws, subset: earlier}.reviewed(ctx, r)
}

// most is how often a pod is prepared for a subset that has no place any more.
const most = 5

// recorded prepares a pod for the subset that it is about to get, and records it there.
func (d *Allocator) recorded(
	ctx context.Context, ws *subset.Spread, r Request, earlier *subset.Subset,
) (*corev1.Pod, error) {
	a := &subset.Arrival{Version: d.versionOf(r.Pod), ID: r.Pod.Name}
	if earlier != nil {
		a.Given = earlier.Name
	}
	if r.Pod.Name == "" {
		a.ID, a.Earlier = string(r.UID), earlierUID(ws, r.Pod)
	}
	c := d.guess(ws, a)
	for attempt := 0; ; attempt++ {
		c.named(r.Pod)
		next, err := c.reviewed(ctx, r)
		if err != nil || c.final {
			return next, err
		}
		actual := d.place(ctx, ws, a, c)
		if attempt == most && !actual.final {
			actual = choice{ws, subset.Unrecorded(ws, *a), cmp.Or(a.Earlier, a.ID), true}
		}
		actual.named(r.Pod)
		if actual.final && actual.same(c) {
			return next, nil
		}
		c = actual
	}
}

// named drops the identity where the pod has a name.
func (c *choice) named(pod *corev1.Pod) {
	if pod.Name != "" {
		c.uid = ""
	}
}

// same reports whether two choices make the same of a pod.
func (c choice) same(other choice) bool {
	return c.name() == other.name() && c.uid == other.uid && c.spread.Generation == other.spread.Generation
}

// name is that of the subset; empty for none.
func (c choice) name() string {
	if c.subset == nil {
		return ""
	}
	return c.subset.Name
}

// reviewed returns the pod with what its subset adds, once the review has not refused it.
func (c choice) reviewed(ctx context.Context, r Request) (next *corev1.Pod, err error) {
	if c.subset != nil {
		if next, err = c.apply(r.Pod); err != nil {
			return nil, err
		}
	}
	if r.Review != nil {
		if err := r.Review(ctx, next); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// guess returns the subset that a pod is about to get, without a read: percentages are taken from the places that the
// status has. Where the guess is wrong, the pod is prepared again.
func (d *Allocator) guess(ws *subset.Spread, a *subset.Arrival) choice {
	if last, is := d.records.Newest(keyOf(ws)); is {
		ws = last
	}
	id := cmp.Or(a.Earlier, a.ID)
	place := subset.Open(ws, subset.StoredLimits(ws, a.Version)).Admit(*a, d.options.Now())
	return choice{spread: ws, subset: place.Subset, uid: cmp.Or(place.ID, id)}
}

// apply returns the pod with what its subset adds; nil where the pod has all of that.
func (c choice) apply(pod *corev1.Pod) (*corev1.Pod, error) {
	m := subset.Match{Name: c.spread.Name, Subset: c.subset.Name, UID: c.uid}
	is, _ := subset.MatchOf(pod)
	added := is.Name == m.Name && is.Subset == m.Subset && subset.Injected(pod, c.subset)
	if added && is == m {
		return nil, nil // an earlier call did
	}
	var next *corev1.Pod
	if added {
		next = pod.DeepCopy()
		next.Annotations[kruise.MatchedWorkloadSpreadKey] = subset.Text(m)
	} else {
		var err error
		if next, err = subset.Inject(pod, c.subset, m); err != nil {
			return nil, &PatchError{Spread: c.spread.Name, Err: err}
		}
	}
	setDeletionCost(next, c.spread, c.subset)
	return next, nil
}

// earlierUID returns the UID that an earlier call for the same pod has chosen; empty where the pod lacks what the
// subset of that call adds.
func earlierUID(ws *subset.Spread, pod *corev1.Pod) string {
	m, _ := subset.MatchOf(pod)
	for i := range ws.Spec.Subsets {
		if s := &ws.Spec.Subsets[i]; m.Name == ws.Name && m.Subset == s.Name && subset.Injected(pod, s) {
			return m.UID
		}
	}
	return ""
}

// place has an arrival recorded in the subset that the pod is prepared for, and returns its subset, with its identity:
// another one, and no final choice, where that subset has no place any more. A pod that would have to wait too long, or
// whose record fails, gets the subset of an earlier call, or one without a limit.
func (d *Allocator) place(ctx context.Context, ws *subset.Spread, a *subset.Arrival, prepared choice) choice {
	wait, id := longest, cmp.Or(a.Earlier, a.ID)
	if until, is := ctx.Deadline(); is {
		wait = min(wait, until.Sub(d.options.Now())*3/4)
	}
	asking, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	r := &record{arrival: a, prepared: prepared}
	err := d.records.Commit(asking, keyOf(ws), r)
	gone := errors.Is(err, groupcommit.ErrGone)
	if err != nil && !gone {
		log.FromContext(ctx).Error(err, "Failed to record a pod, which gets a subset without a limit",
			"workloadSpread", ws.Name, "namespace", ws.Namespace)
		return choice{ws, subset.Unrecorded(ws, *a), id, true}
	}
	if gone || r.place.Subset == nil {
		return choice{spread: prepared.spread, uid: prepared.uid, final: true}
	}
	return choice{r.spread, r.place.Subset, cmp.Or(r.place.ID, id), !r.place.Unprepared}
}

// longest is how long a pod waits for its record, also on an API server that is busy: a pod without a record may have a
// place that is gone.
const longest = 7 * time.Second

// setDeletionCost gives a new pod the deletion cost that the controller would give it, so that the controller has
// nothing to write.
func setDeletionCost(pod *corev1.Pod, ws *subset.Spread, s *subset.Subset) {
	if !HasCosts(ws) {
		return
	}
	for i := range ws.Spec.Subsets {
		if ws.Spec.Subsets[i].Name == s.Name {
			pod.Annotations = maps.Clone(pod.Annotations)
			pod.Annotations[corev1.PodDeletionCost] = strconv.Itoa(subset.CostWithin(i, len(ws.Spec.Subsets)))
			return
		}
	}
}
