package podunavailablebudget

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what there is to do about a budget now: the status, and then the stamps. All of it follows from the snapshot.
type plan struct {
	// status to write. It is not written where it is the stored one.
	status  pub.Status
	changed bool
	// stamped are the pods to stamp, by name.
	stamped []*corev1.Pod
	// notes for events.
	notes []note.Note
	// notDeleted are the UIDs of the pods whose deletion was admitted and did not happen.
	notDeleted map[string]types.UID
	// after is when to reconcile again; zero for never.
	after time.Duration
}

// maxStamps is how many pods one pass stamps at most, so that the status does not wait for thousands of writes.
const maxStamps = 500

// newPlan reads nothing but the snapshot.
func newPlan(s *snapshot, policy pub.Policy, now time.Time) plan {
	counts := s.budget.Count(s.pods, policy)
	result := pub.Recount(pub.Input{Budget: s.budget, Counts: counts, Total: s.total, Now: now})
	p := plan{
		status:     result.Status,
		changed:    result.Changed,
		notes:      append(slices.Clone(s.notes), result.Notes...),
		notDeleted: map[string]types.UID{},
	}
	for _, pod := range s.pods {
		if slices.Contains(result.NotDeleted, pod.Name) {
			p.notDeleted[pod.Name] = pod.UID
		}
	}
	var more bool
	p.stamped, more = s.toStamp()
	p.after = passes.Sooner(result.RequeueAfter, s.recheckAfter)
	if left := settles(s.budget.Status, result.Status, now); p.changed && left > 0 {
		p.changed = false
		p.after = passes.Sooner(p.after, left)
	}
	if more {
		p.after = passes.Sooner(p.after, time.Second)
	}
	return p
}

// settle is how long a status may have records of pods that terminate, and count pods as available that records say are
// not. Pods that are evicted together then cost one write.
const settle = 5 * time.Second

// settles returns how long the write of a status can wait that says nothing new to evictions: they have as much room
// when a pod that a record counts as unavailable is gone, and when the available pods are counted again. The oldest
// record decides. Zero is for no time.
func settles(before, after pub.Status, now time.Time) time.Duration {
	same := after
	same.DisruptedPods, same.UnavailablePods = before.DisruptedPods, before.UnavailablePods
	same.CurrentAvailable = before.CurrentAvailable
	if !apiequality.Semantic.DeepEqual(same, before) {
		return 0
	}
	oldest := now
	for _, records := range []map[string]metav1.Time{before.DisruptedPods, before.UnavailablePods} {
		for _, at := range records {
			if at.Time.Before(oldest) {
				oldest = at.Time
			}
		}
	}
	if oldest.Equal(now) {
		return 0 // no record says how long the write has waited
	}
	return settle - now.Sub(oldest)
}

// unstamped returns the pods that do not name the budget.
func (s *snapshot) unstamped() []*corev1.Pod {
	var all []*corev1.Pod
	for _, pod := range s.pods {
		if pub.Stamp(pod) != s.budget.Name {
			all = append(all, pod)
		}
	}
	return all
}

// toStamp returns the pods that reviews match with the budget, and that do not name it. A pod that no budget matches is
// one that the selector of an unwatched target selects. It reports whether more pods are left.
func (s *snapshot) toStamp() (all []*corev1.Pod, more bool) {
	for _, pod := range s.unstamped() {
		var chain pub.Chain
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			chain = s.chains[owner.UID]
		}
		if best := pub.Match(pod, chain, s.budgets); best == nil || best.Name == s.budget.Name {
			all = append(all, pod)
		}
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	if len(all) > maxStamps {
		return all[:maxStamps], true
	}
	return all, false
}

// records returns the writes that record the name of the budget on pods.
func (p *plan) records(s *snapshot) []*write.Write {
	var writes []*write.Write
	names := map[string]string{kruise.PodRelatedPubKey: s.budget.Name, kruise.PodRelatedPubKeyOld: s.budget.Name}
	for _, of := range p.stamped {
		name := types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
		pod := stored.MetadataOf(corev1.SchemeGroupVersion.WithKind("Pod"), name)
		pod.SetUID(of.UID)
		writes = append(writes, &write.Write{
			Verb: write.Patch, Object: pod, Type: types.StrategicMergePatchType,
			Body: write.Fields{"metadata": map[string]any{"uid": of.UID, "annotations": names}},
		})
	}
	return writes
}

// report returns the write of the status, if the plan changes it. The API server refuses a status that follows from an
// older budget.
func (s *snapshot) report(p *plan) (*write.Write, error) {
	if !p.changed {
		return nil, nil
	}
	is, status := *s.object, p.status
	is.Status = status
	return stored.WriteStatusVersion(stored.Kind{GVK: gvk()}, s.object, &is, map[string]any{ // the schema requires these
		"unavailableAllowed": status.UnavailableAllowed, "currentAvailable": status.CurrentAvailable,
		"desiredAvailable": status.DesiredAvailable, "totalReplicas": status.TotalReplicas,
	})
}
