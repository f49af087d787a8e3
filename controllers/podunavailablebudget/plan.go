package podunavailablebudget

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/write"
)

// pass is what one reconcile does.
type pass struct {
	// status to write. It is not written where it is the stored one.
	status  pub.Status
	changed bool
	// stamps to write, of the first pods by name.
	stamps []stamp
	// notes for events.
	notes []note.Note
	// notDeleted are the UIDs of the pods whose deletion was admitted and did not happen.
	notDeleted map[string]types.UID
	// after is when to reconcile again; zero for never.
	after time.Duration
}

// stamp is the name of a budget, to be recorded on a pod.
type stamp struct {
	pod string
	uid types.UID
}

// maxStamps is how many pods one pass stamps at most, so that the status does not wait for thousands of writes.
const maxStamps = 500

// plan decides about a budget by its counted pods and those of the other budgets in the namespace.
func plan(s *snapshot, counted *tracked, others map[string]*tracked, now time.Time) pass {
	result := pub.Recount(pub.Input{Budget: s.budget, Counts: &counted.counts, Total: s.total, Now: now})
	p := pass{
		status:     result.Status,
		changed:    result.Changed,
		notes:      append(slices.Clone(s.notes), result.Notes...),
		notDeleted: map[string]types.UID{},
	}
	for _, name := range result.NotDeleted {
		p.notDeleted[name] = counted.pods[name].uid
	}
	var more bool
	p.stamps, more = stamps(s, counted, others)
	p.after = requeue.Sooner(result.RequeueAfter, s.recheckAfter)
	if left := settles(s.budget.Status, result.Status, now); p.changed && left > 0 {
		p.changed = false
		p.after = requeue.Sooner(p.after, left)
	}
	if more {
		p.after = requeue.Sooner(p.after, time.Second)
	}
	return p
}

// settle is how long a status may have records of pods that terminate, and count pods as available that records say are
// not. Pods that are evicted together then cost one write.
const settle = 5 * time.Second

// settles returns how long the write of a status can wait that says nothing new to evictions: they have as much room
// when a pod that a record counts as unavailable is gone, and when the available pods are counted again. The oldest of
// the records that the write drops decides, or of all, where it drops none. Zero is for no time.
func settles(before, after pub.Status, now time.Time) time.Duration {
	same := after
	same.DisruptedPods, same.UnavailablePods = before.DisruptedPods, before.UnavailablePods
	same.CurrentAvailable = before.CurrentAvailable
	if !apiequality.Semantic.DeepEqual(same, before) {
		return 0
	}
	var dropped, kept []time.Time
	for _, records := range []struct{ before, after map[string]metav1.Time }{
		{before.DisruptedPods, after.DisruptedPods}, {before.UnavailablePods, after.UnavailablePods},
	} {
		for name, at := range records.before {
			if _, stays := records.after[name]; stays {
				kept = append(kept, at.Time)
			} else {
				dropped = append(dropped, at.Time)
			}
		}
	}
	if len(dropped) == 0 {
		dropped = kept
	}
	if len(dropped) == 0 || slices.MaxFunc(dropped, time.Time.Compare).After(now) {
		return 0 // nothing says when a record is old, or the clock of its writer is ahead
	}
	return settle - now.Sub(slices.MinFunc(dropped, time.Time.Compare))
}

// stamps returns the pods whose stamp is missing, or names a budget that is gone or no longer guards the pod. Of
// several budgets that guard a pod, the one stamps that reviews of the pod find first. It reports whether more pods are
// left.
func stamps(s *snapshot, counted *tracked, others map[string]*tracked) (all []stamp, more bool) {
	if s.exist == nil {
		return nil, false
	}
	for name := range counted.unstamped {
		is := counted.pods[name]
		if keeps(s, is.stamp, name, others) || !first(s, name, others) {
			continue
		}
		all = append(all, stamp{name, is.uid})
	}
	slices.SortFunc(all, func(a, b stamp) int { return strings.Compare(a.pod, b.pod) })
	if len(all) > maxStamps {
		return all[:maxStamps], true
	}
	return all, false
}

// keeps reports whether the stamp of a pod stays: it names another budget that guards the pod. One that was not
// reconciled yet may do so.
func keeps(s *snapshot, named, pod string, others map[string]*tracked) bool {
	if named == "" || !s.exist[named] {
		return false
	}
	other := others[named]
	if other == nil {
		return true
	}
	_, guards := other.pods[pod]
	return guards
}

// first reports whether no other budget that guards a pod comes before this one.
func first(s *snapshot, pod string, others map[string]*tracked) bool {
	for name, other := range others {
		_, guards := other.pods[pod]
		if guards && s.exist[name] && name != s.budget.Name && other.budget.Precedes(s.budget) {
			return false
		}
	}
	return true
}

// records returns the writes that record the name of the budget on pods.
func (p *pass) records(s *snapshot) ([]*write.Write, error) {
	var writes []*write.Write
	for _, of := range p.stamps {
		data, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid":         of.uid,
			"annotations": map[string]string{kruise.PodRelatedPubKey: s.budget.Name, kruise.PodRelatedPubKeyOld: s.budget.Name},
		}})
		if err != nil {
			return nil, fmt.Errorf("encode annotations: %w", err)
		}
		pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.budget.Namespace, Name: of.pod, UID: of.uid,
		}}
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		writes = append(writes, &write.Write{
			Verb: write.Patch, Object: pod, Type: types.StrategicMergePatchType, Body: write.Bytes(data),
		})
	}
	return writes, nil
}
