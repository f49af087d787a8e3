package daemonset

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/predownload"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// maxMoves bounds the pods that one pass moves to an equal revision. The writes wake the next pass.
const maxMoves = 250

// equals remembers which revisions hold the template of another one. The data of a revision does not change.
type equals struct {
	to    types.UID
	known map[types.UID]bool
}

// merge finds the revisions that hold the template of the update revision under another name, as OpenKruise stores them
// after an upgrade of its libraries. Their pods run what the set asks for: they get the hash of the update revision,
// and the plan looks at them as if they had it.
func (p *plan) merge(s *snapshot) {
	update := p.Resolution.Update
	if update == nil || s.IsDeleted() {
		return
	}
	p.equals = equals{to: update.UID, known: map[types.UID]bool{}}
	hash, moves := hashOf(update), map[string]bool{}
	for _, rev := range s.Revisions {
		if rev.UID == update.UID {
			continue
		}
		isEqual, known := s.known.equals.known[rev.UID]
		if !known || s.known.equals.to != update.UID {
			isEqual = revision.SameData(rev.Data.Raw, update.Data.Raw)
		}
		p.equals.known[rev.UID] = isEqual
		if isEqual && hashOf(rev) != hash {
			p.merged, moves[hashOf(rev)] = append(p.merged, rev), true
		}
	}
	for _, rev := range s.Revisions {
		if !p.equals.known[rev.UID] {
			delete(moves, hashOf(rev)) // users may write the label: pods that have it may run the other template
		}
	}
	if len(moves) == 0 {
		return
	}
	p.held = map[string]bool{}
	for _, pod := range s.Orphans {
		p.held[pod.Labels[kruise.PodRevisionLabelKey]] = true
	}
	s.Active, s.Inactive = p.move(s.Active, moves, hash), p.move(s.Inactive, moves, hash)
}

// move returns the pods as they are with the hash of the update revision.
func (p *plan) move(pods []*corev1.Pod, from map[string]bool, hash string) []*corev1.Pod {
	path := write.Pointer("metadata", "labels", kruise.PodRevisionLabelKey)
	pods = slices.Clone(pods)
	for i, pod := range pods {
		is := pod.Labels[kruise.PodRevisionLabelKey]
		if !from[is] {
			continue
		}
		p.held[is] = true
		if len(p.moves) < maxMoves {
			p.moves = append(p.moves,
				*write.JSON(pod, write.Main, append(write.TestUID(pod), write.Test(path, is), write.Replace(path, hash))...))
		}
		moved := *pod
		moved.Labels = maps.Clone(pod.Labels)
		moved.Labels[kruise.PodRevisionLabelKey] = hash
		pods[i] = &moved
	}
	return pods
}

// parts are what the pass has beside the revision and the pods. Revisions that are merged go as soon as no pod has
// them.
func (o Options) parts(s *snapshot, p *plan) workloads.Parts {
	return workloads.Parts{
		PreDownload: func() predownload.Rollout { return p.preDownload(s, o) },
		Report: func() (workloads.Report, error) {
			return reporter().Report(&s.Observation, p.Plan, p.status(s))
		},
		Limit: *s.set.Spec.RevisionHistoryLimit, Kept: p.merged,
		Last: func() []*write.Write { return p.trimMerged() },
	}
}

// trimMerged returns the writes that delete the merged revisions that no pod has.
func (p *plan) trimMerged() []*write.Write {
	var writes []*write.Write
	for _, rev := range p.merged {
		if !p.held[hashOf(rev)] {
			writes = append(writes, &write.Write{Verb: write.Delete, Object: rev})
		}
	}
	return writes
}
