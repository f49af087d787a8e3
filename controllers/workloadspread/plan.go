package workloadspread

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// pass is what one reconcile does.
type pass struct {
	// status to write. It is not written where it is the stored one.
	status appsv1beta1.WorkloadSpreadStatus
	// patches of pods, which come before the status.
	patches []*write.Write
	// deletions of pods that find no node come after the status, so that their workload creates them elsewhere.
	deletions []*write.Write
	notes     []note.Note
	// after is when to reconcile again; zero for never.
	after time.Duration
}

const (
	// maxPatches is how many pods one pass patches.
	maxPatches = 500
	// recheck is when to look again at a target of which no event reports a change.
	recheck = 15 * time.Second

	// noteInvalid is a spec that does not spread pods.
	noteInvalid = "InvalidSpec"
	// noteBadPatch is a patch of a subset that cannot be applied to a pod.
	noteBadPatch = "PatchExistingPodFailed"
	// noteBadPath is a targetFilter.replicasPathList that cannot be read.
	noteBadPath = "ReadReplicasFailed"
)

// plan decides about a WorkloadSpread by the pods of its target.
func plan(s *snapshot) *pass {
	if s.spread == nil {
		return release(s.pods)
	}
	p := &pass{status: s.spread.Status}
	if s.malformed != nil {
		p.note(noteInvalid, s.spread.Name, s.malformed.Error())
		return p
	}
	// what can be done is done all the same
	if faults := subset.Validate(s.spread, s.allowed...); len(faults) > 0 {
		p.note(noteInvalid, s.spread.Name, faults.ToAggregate().Error())
	}
	if len(s.spread.Spec.Subsets) == 0 {
		return p
	}
	if s.target.Fault != nil {
		p.note(noteBadPath, s.spread.Name, s.target.Fault.Error())
	}
	limits, faults := subset.Limits(s.spread.Spec.Subsets, s.target.Base)
	seen := subset.Observation{
		Spread: s.spread, Limits: limits, Members: subset.Assign(s.assignment(limits)), Newest: s.newest, Now: s.now,
	}
	report := subset.Status(seen)
	p.status, p.deletions, p.after = report.Status, write.Deletions(report.Stuck), report.RequeueAfter
	p.notes = slices.Concat(p.notes, faults, report.Notes)
	if s.target.Unwatched && !s.target.Gone {
		p.after = passes.Sooner(p.after, recheck)
	}
	p.mark(s, seen)
	return p
}

// release removes from pods what was written for a WorkloadSpread that was deleted.
func release(pods []*corev1.Pod) *pass {
	p := &pass{}
	for _, pod := range pods {
		if w := unmark(pod); subset.Active(pod) && w != nil {
			p.patches = append(p.patches, w)
		}
	}
	return p
}

func (p *pass) note(code, object, text string) {
	p.notes = append(p.notes, note.Note{Level: note.Blocked, Code: code, Object: object, Text: text})
}

// mark plans the patches of pods: annotations of those that are older than the WorkloadSpread, and deletion costs.
func (p *pass) mark(s *snapshot, seen subset.Observation) {
	var costs map[string]int
	if workloadspread.HasCosts(s.spread) {
		costs = subset.Costs(seen)
	}
	for _, m := range seen.Members {
		if s.later[m.Pod.UID] {
			p.continueLater(s)
			continue
		}
		labels, annotations, err := subset.Marks(s.spread, m)
		if err != nil {
			p.note(noteBadPatch, m.Pod.Name,
				fmt.Sprintf("Failed to apply the patch of subset %s to the metadata of pod %s: %v", m.Subset, m.Pod.Name, err))
			m.Adopted = false
			labels, annotations = m.Pod.Labels, m.Pod.Annotations
		}
		if cost, ok := costs[m.Pod.Name]; ok && annotations[corev1.PodDeletionCost] != strconv.Itoa(cost) {
			annotations = maps.Clone(annotations)
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[corev1.PodDeletionCost] = strconv.Itoa(cost)
		}
		w := patchOf(m.Pod, labels, annotations)
		if w == nil {
			continue
		}
		if len(p.patches) == maxPatches {
			p.continueLater(s)
			return
		}
		p.patches = append(p.patches, w)
	}
}

// continueLater leaves patches to the next pass. A generation is observed when the costs of the pods stand, so that a
// scale-in after it deletes the right pods.
func (p *pass) continueLater(s *snapshot) {
	p.status.ObservedGeneration = s.spread.Status.ObservedGeneration
	p.after = passes.Sooner(p.after, time.Second)
}

// patchOf returns the patch that gives a pod labels and annotations; nil where the pod has them.
func patchOf(pod *corev1.Pod, labels, annotations map[string]string) *write.Write {
	moreLabels, moreAnnotations := changed(pod.Labels, labels), changed(pod.Annotations, annotations)
	if len(moreLabels)+len(moreAnnotations) == 0 {
		return nil
	}
	ops := write.TestUID(pod)
	if _, ok := moreAnnotations[kruise.MatchedWorkloadSpreadKey]; ok {
		ops = append(ops, write.TestAnnotation(pod, kruise.MatchedWorkloadSpreadKey))
	}
	ops = append(ops, write.SetLabels(pod, moreLabels)...)
	return write.JSON(pod, "", append(ops, write.SetAnnotations(pod, moreAnnotations)...)...)
}

// changed returns the values that differ; nil for a key that is to be removed.
func changed(was, is map[string]string) map[string]*string {
	all := map[string]*string{}
	for key, value := range is {
		if old, had := was[key]; !had || old != value {
			all[key] = &value
		}
	}
	for key := range was {
		if _, has := is[key]; !has {
			all[key] = nil
		}
	}
	return all
}

// unmark returns the patch that removes from a pod what this controller has written. A cost that a user has set stays.
func unmark(pod *corev1.Pod) *write.Write {
	annotations := maps.Clone(pod.Annotations)
	delete(annotations, kruise.MatchedWorkloadSpreadKey)
	if subset.OwnCost(pod.Annotations[corev1.PodDeletionCost], subset.MaxSubsets) {
		delete(annotations, corev1.PodDeletionCost)
	}
	return patchOf(pod, pod.Labels, annotations)
}
