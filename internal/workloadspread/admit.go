package workloadspread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/groupcommit"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

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

// choice is the subset of a pod.
type choice struct {
	spread *subset.Spread
	// subset is nil where no subset has a place.
	subset *subset.Subset
	// uid of a pod without a name.
	uid string
}

// Admit records a new pod, and returns it with what its subset adds; nil where the pod stays as it is. The request is
// the namespace of the admission request, and as its name the UID, which identifies a pod without a name. An error is
// about a lookup, or a *PatchError.
func (d *Allocator) Admit(ctx context.Context, request types.NamespacedName, pod *corev1.Pod) (*corev1.Pod, error) {
	if !d.lookups.Spreads.Any(request.Namespace) || !subset.Active(pod) {
		return nil, nil
	}
	ws, err := d.find(ctx, request.Namespace, pod)
	if err != nil || ws == nil {
		return nil, err
	}
	earlier, proven := subset.Earlier(ws, pod)
	a := subset.Arrival{Version: subset.VersionOf(pod, d.options.Versioned), ID: cmp.Or(pod.Name, request.Name)}
	if m, _ := subset.MatchOf(pod); earlier != nil && pod.Name == "" {
		a.Earlier = m.UID
	}
	c := choice{spread: ws}
	if proven {
		c.subset, a.Given = earlier, earlier.Name
	}
	if !isStatefulSet(ws) {
		c = d.record(ctx, ws, pod, a)
	} else if _, ordinal, ok := ordinals.Split(pod.Name); ok && c.subset == nil {
		c.subset = subset.ByOrdinal(ws, ordinal)
	}
	if c.subset == nil {
		return nil, nil
	}
	return c.apply(pod)
}

// maxWait is how long a pod waits for its record, also on an API server that is busy: a pod without a record may have a
// place that is gone.
const maxWait = 7 * time.Second

// record records a pod in the subset that it gets. A pod that would have to wait too long, or whose record fails, gets
// the subset of an earlier call, or one without a limit.
func (d *Allocator) record(ctx context.Context, ws *subset.Spread, pod *corev1.Pod, a subset.Arrival) choice {
	wait := maxWait
	if until, ok := ctx.Deadline(); ok {
		wait = min(wait, until.Sub(d.options.Now())*3/4)
	}
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	recorded := &record{arrival: &a}
	err := d.records.Commit(bounded, keyOf(ws), recorded)
	switch {
	case errors.Is(err, groupcommit.ErrGone):
		return choice{}
	case err != nil:
		log.FromContext(ctx).Error(err, "Failed to record a pod, which gets a subset without a limit",
			"workloadSpread", ws.Name, "namespace", ws.Namespace)
		place := subset.Place{Subset: subset.Unrecorded(ws, a), ID: cmp.Or(a.Earlier, a.ID)}
		recorded = &record{spread: ws, place: place} // the former may still be written to
	}
	c := choice{spread: recorded.spread, subset: recorded.place.Subset}
	if pod.Name == "" {
		c.uid = recorded.place.ID
	}
	return c
}

// apply returns the pod with what its subset adds; nil where the pod has all of that.
func (c choice) apply(pod *corev1.Pod) (*corev1.Pod, error) {
	next, err := subset.Inject(pod, c.subset, subset.Match{Name: c.spread.Name, Subset: c.subset.Name, UID: c.uid})
	if err != nil {
		return nil, &PatchError{Spread: c.spread.Name, Err: err}
	}
	setDeletionCost(next, c.spread, c.subset)
	if equality.Semantic.DeepEqual(next, pod) {
		return nil, nil // an earlier call did
	}
	return next, nil
}

// setDeletionCost gives a new pod the deletion cost that the controller would give it, so that the controller has
// nothing to write.
func setDeletionCost(pod *corev1.Pod, ws *subset.Spread, s *subset.Subset) {
	if !HasCosts(ws) {
		return
	}
	for i := range ws.Spec.Subsets {
		if ws.Spec.Subsets[i].Name == s.Name {
			pod.Annotations[corev1.PodDeletionCost] = strconv.Itoa(subset.CostWithin(i, len(ws.Spec.Subsets)))
			return
		}
	}
}
