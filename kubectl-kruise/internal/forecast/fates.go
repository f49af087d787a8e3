package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// judge finds the fates of pods.
type judge struct {
	*record

	revisions []*appsv1.ControllerRevision
	// kept is how many more pods stay at an older revision as the workload asks for, by the note why.
	kept note.Note
	left int
	// replaced are the pods that new ones replace, and replacements the new ones.
	replaced, replacements map[*history]bool
	nodeLabels             map[string]labels.Set
}

func newJudge(ctx context.Context, s *simulation) (*judge, error) {
	j := &judge{
		record: s.record, nodeLabels: map[string]labels.Set{},
		replaced: map[*history]bool{}, replacements: map[*history]bool{},
	}
	var list appsv1.ControllerRevisionList
	var nodes corev1.NodeList
	if err := s.server.List(ctx, &list, client.InNamespace(s.name.Namespace)); err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	if err := s.server.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for i := range list.Items {
		j.revisions = append(j.revisions, &list.Items[i])
	}
	j.revisions = revision.Complete(j.revisions)
	for i := range nodes.Items {
		j.nodeLabels[nodes.Items[i].Name] = nodes.Items[i].Labels
	}
	j.findKept()
	j.findReplaced()
	return j, nil
}

// findReplaced pairs pods that are gone with new ones: those in the same place; else those that their update deleted,
// then those of older revisions, as a rollout with a surge deletes them.
func (j *judge) findReplaced() {
	var gone, created []*history
	for _, h := range j.histories() {
		switch {
		case h.first == nil && h.last != nil:
			created = append(created, h)
		case h.first != nil && h.first.DeletionTimestamp == nil && h.isGone():
			gone = append(gone, h)
		}
	}
	pair := func(replaces func(gone, created *history) bool) {
		for _, h := range gone {
			at := slices.IndexFunc(created, func(c *history) bool { return !j.replacements[c] && replaces(h, c) })
			if !j.replaced[h] && at >= 0 {
				j.replaced[h], j.replacements[created[at]] = true, true
			}
		}
	}
	if place := j.kind.place; place != nil {
		pair(func(gone, created *history) bool { return place(gone.first) == place(created.last) && j.isOld(gone) })
		return
	}
	pair(func(gone, _ *history) bool { return gone.marked })
	pair(func(gone, _ *history) bool {
		_, surplus := gone.why[scale.NoteScaleIn]
		return surplus && j.isOld(gone)
	})
}

// isOld reports whether a pod has another revision at the begin than the wanted one.
func (j *judge) isOld(h *history) bool { return !revision.Match(j.revisionOf(h.first), j.update) }

// histories are those of all pods, by name with numbers in their order.
func (j *judge) histories() []*history {
	return slices.SortedFunc(maps.Values(j.record.pods), func(a, b *history) int {
		x, i, _ := ordinals.Split(a.name)
		y, k, _ := ordinals.Split(b.name)
		if x == y && x != "" {
			return cmp.Compare(i, k)
		}
		return cmp.Compare(a.name, b.name)
	})
}

// findKept reads how many pods the workload keeps at older revisions.
func (j *judge) findKept() {
	j.kept, j.left = j.wanted.kept, int(j.wanted.keptPods)
	for _, n := range j.notes {
		switch n.Code {
		case scale.NotePaused, scale.NoteOnDelete, rollout.NoteNotUpdate:
			j.kept, j.left = n, len(j.record.pods)
			j.kept.Text = map[string]string{
				scale.NotePaused: "updates are paused", scale.NoteOnDelete: "pods are updated when they are deleted",
				rollout.NoteNotUpdate: "the update strategy leaves running pods alone",
			}[n.Code]
			return
		case scale.NotePartition:
			j.kept, j.left = n, int(j.wanted.bounds.Partition)
			j.kept.Text = "the partition keeps the pod"
		}
	}
}

// pods are the fates of all pods by name, first of those that exist.
func (j *judge) pods() []Pod {
	var existing, created []Pod
	for _, h := range j.histories() {
		switch {
		case h.first != nil:
			existing = append(existing, j.pod(h))
		case h.last != nil && !j.replacements[h]:
			created = append(created, Pod{
				Name: h.name, Fate: Created, Node: h.last.Spec.NodeName, To: j.revisionOf(h.last),
			})
		}
	}
	return append(existing, created...)
}

// isGone reports whether a pod does not exist any more, or is about to end.
func (h *history) isGone() bool {
	return h.last == nil || h.last.DeletionTimestamp != nil && len(h.last.Finalizers) == 0
}

// pod is the fate of a pod that exists at the begin.
func (j *judge) pod(h *history) Pod {
	p := Pod{Name: h.name, Node: h.first.Spec.NodeName, From: j.revisionOf(h.first), Hooks: h.hooks}
	if p.Containers = slices.Sorted(maps.Keys(h.restarts)); h.isGone() {
		p.Containers = nil
	}
	if !h.began.IsZero() {
		p.Batch = 1 + slices.IndexFunc(j.batches, h.began.Equal)
	}
	switch {
	case h.isGone():
		j.gone(h, &p)
	case h.marked || h.last.DeletionTimestamp != nil:
		j.held(h, &p)
	case revision.Match(j.revisionOf(h.first), j.revisionOf(h.last)) && !revision.Match(j.revisionOf(h.last), j.update):
		j.old(h, &p)
	default:
		j.inPlace(h, &p)
	}
	return p
}

// gone is the fate of a pod that does not exist any more.
func (j *judge) gone(h *history, p *Pod) {
	p.Fate = Deleted
	if h.marked || j.replaced[h] {
		p.Fate, p.To = Recreated, j.update
		j.paths(h, p)
		if p.Reason == "" {
			p.Reason, p.Text = reasonSurge, "a pod of the surge takes its place"
		}
		return
	}
	if h.first.DeletionTimestamp != nil {
		p.Reason, p.Text = reasonTerminating, "the pod was deleted before the change"
		p.Batch = 0
		return
	}
	codes := []string{scale.NoteChosen, scale.NoteFinished, scale.NoteScaleIn, scale.NoteNoSlot, scale.NoteReleased}
	for _, code := range append(codes, slices.Sorted(maps.Keys(h.why))...) {
		if n, ok := h.why[code]; ok {
			p.Reason, p.Text = n.Code, n.Text
			return
		}
	}
	p.Reason, p.Text = scale.NoteScaleIn, "the workload asks for fewer pods"
}

// paths are the fields for which a pod is recreated.
func (j *judge) paths(h *history, p *Pod) {
	if j.wanted.recreates {
		p.Reason, p.Text = "UpdateStrategy", "the update strategy of the workload recreates pods"
		return
	}
	if n, ok := h.why[workload.NoteNotInPlace]; ok {
		p.Reason, p.Text = n.Code, n.Text
	}
	from, to := j.template(p.From), j.template(j.update)
	if from == nil || to == nil {
		return
	}
	var blocked *inplace.BlockedError
	if _, err := inplace.Diff(from, to, j.nodes.policy); errors.As(err, &blocked) {
		for _, b := range blocked.Blocks {
			p.Paths = append(p.Paths, b.Path)
		}
		p.Reason, p.Text = cmp.Or(p.Reason, workload.NoteNotInPlace), cmp.Or(p.Text, blocked.Error())
	}
}

// template of a stored revision; nil where it cannot be read.
func (j *judge) template(label string) *corev1.PodTemplateSpec {
	if j.wanted.ownTemplates {
		switch label {
		case j.update:
			return j.wanted.template
		case j.live.update:
			return j.live.template
		}
		return nil
	}
	for _, r := range j.revisions {
		if label != "" && revision.Match(r.Name, label) && strings.HasPrefix(r.Name, j.name.Name) {
			if t, err := revision.Decode(r.Data.Raw); err == nil {
				return t
			}
		}
	}
	return nil
}

// held is the fate of a pod that is to be deleted and is not.
func (j *judge) held(h *history, p *Pod) {
	p.Fate = Blocked
	if len(h.hooks) > 0 {
		p.Reason, p.Text = scale.NoteHooked, "the deletion waits for the lifecycle hook "+strings.Join(h.hooks, ", ")
		return
	}
	j.explainBlocked(h, p)
}

// old is the fate of a pod that stays at its revision.
func (j *judge) old(h *history, p *Pod) {
	if len(h.hooks) > 0 && j.hooks.held {
		p.Fate, p.Reason = Blocked, scale.NoteHooked
		p.Text = "the update waits for the lifecycle hook " + strings.Join(h.hooks, ", ")
		return
	}
	p.Fate, p.To = Kept, p.From
	if node, known := j.nodeLabels[p.Node]; known && j.wanted.selector != nil && !j.wanted.selector.Matches(node) {
		p.Reason, p.Text, p.Batch = reasonSelector, "the selector of the rollout does not match the node", 0
		return
	}
	if j.wanted.podSelector != nil && !j.wanted.podSelector.Matches(labels.Set(h.last.Labels)) {
		p.Reason, p.Text, p.Batch = rollout.NoteNotSelected, "the selector of the rollout does not match the pod", 0
		return
	}
	if p.Batch = 0; j.left > 0 {
		j.left--
		p.Reason, p.Text = j.kept.Code, j.kept.Text
		return
	}
	p.Fate = Blocked
	j.explainBlocked(h, p)
}

// explainBlocked finds the note why a pod stands still.
func (j *judge) explainBlocked(h *history, p *Pod) {
	var about, causes []note.Note
	for _, n := range j.notes {
		if n.Object == h.name {
			about = append(about, n)
		}
		if n.Object != "" { // the notes about all of them count those that wait
			causes = append(causes, n)
		}
	}
	n, found := note.Headline(about)
	for _, others := range [][]note.Note{causes, j.notes} {
		if !found {
			n, found = note.Headline(others)
		}
	}
	if found {
		p.Reason, p.Text = n.Code, n.Text
	} else if j.failed != nil {
		p.Reason, p.Text = reasonFailed, j.failed.Error()
	}
}

// inPlace is the fate of a pod that stays.
func (j *judge) inPlace(h *history, p *Pod) {
	p.To = j.revisionOf(h.last)
	if images := changedImages(h.first, h.last); len(images) > 0 {
		p.Images = images
	}
	moved := !revision.Match(p.From, p.To)
	if p.Fate = InPlace; !moved && len(p.Containers) == 0 {
		p.Fate = Unchanged
		p.Batch = 0
	}
	if done, why := inplace.Completed(h.last, j.nodes.policy); !done {
		p.Fate, p.Reason, p.Text = Blocked, why.Code, why.Text
		return
	}
	if len(h.hooks) > 0 && j.hooks.held {
		p.Fate, p.Reason = Blocked, scale.NoteHooked
		p.Text = "the pod waits for the lifecycle hook " + strings.Join(h.hooks, ", ")
		return
	}
	if is, _ := j.simulation.available(h.last); !is && p.Fate == InPlace {
		p.Fate = Blocked
		j.explainBlocked(h, p)
	}
}
