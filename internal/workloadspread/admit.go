package spreads

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// Request is a pod that is being created.
type Request struct {
	Namespace string
	Pod       *corev1.Pod
	// UID of the admission request stands for a pod without a name.
	UID types.UID
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
}

// Admit returns the pod with what its subset adds; nil where the pod stays as it is. An error is about a lookup, or
// a *PatchError.
func (d *Desk) Admit(ctx context.Context, r Request) (*corev1.Pod, error) {
	if !d.lookups.Spreads.Any(r.Namespace) || !subset.Active(r.Pod) {
		return nil, nil
	}
	ws, err := d.find(ctx, r.Namespace, r.Pod)
	if err != nil || ws == nil {
		return nil, err
	}
	c, err := d.choose(ctx, ws, r)
	if err != nil || c.subset == nil {
		return nil, err
	}
	return c.apply(r.Pod)
}

// choose returns the subset of a pod: by its ordinal, or by the places.
func (d *Desk) choose(ctx context.Context, ws *subset.Spread, r Request) (choice, error) {
	earlier := subset.Earlier(ws, r.Pod)
	if target, _ := TargetOf(ws); isStatefulSet(target) {
		if earlier != nil {
			return choice{spread: ws, subset: earlier}, nil
		}
		s, err := d.byOrdinal(ctx, ws, target, r)
		return choice{spread: ws, subset: s}, err
	}
	a := &subset.Arrival{Version: d.versionOf(r.Pod), ID: r.Pod.Name}
	if earlier != nil {
		a.Given = earlier.Name
	}
	if r.Pod.Name != "" {
		c := d.place(ctx, ws, a)
		c.uid = ""
		return c, nil
	}
	a.ID, a.Earlier = string(r.UID), earlierUID(ws, r.Pod)
	return d.place(ctx, ws, a), nil
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
	price(next, c.spread, c.subset)
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

// place has an arrival recorded, and returns its subset, with its identity. A pod that would have to wait too long, or
// whose record fails, gets the subset of an earlier call, or one without a limit.
func (d *Desk) place(ctx context.Context, ws *subset.Spread, a *subset.Arrival) choice {
	wait, id := longest, cmp.Or(a.Earlier, a.ID)
	if until, is := ctx.Deadline(); is {
		wait = min(wait, until.Sub(d.options.Now())*3/4)
	}
	asking, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	e := &entry{arrival: a}
	if err := d.turns.Ask(asking,
		account{types.NamespacedName{Namespace: ws.Namespace, Name: ws.Name}, ws.UID}, e); err != nil {
		log.FromContext(ctx).Error(err, "Failed to record a pod, which gets a subset without a limit",
			"workloadSpread", ws.Name, "namespace", ws.Namespace)
		return choice{ws, subset.Unrecorded(ws, *a), id}
	}
	if e.place.Subset == nil {
		return choice{spread: ws}
	}
	return choice{e.spread, e.place.Subset, cmp.Or(e.place.ID, id)}
}

// longest is how long a pod waits for its record, also on an API server that is busy: a pod without a record may have a
// place that is gone.
const longest = 7 * time.Second

// price gives a new pod the deletion cost that the controller would give it, so that the controller has nothing to
// write.
func price(pod *corev1.Pod, ws *subset.Spread, s *subset.Subset) {
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
