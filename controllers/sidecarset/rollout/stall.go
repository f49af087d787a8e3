package rollout

import (
	"fmt"
	"time"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Stall measures how long updates that wait for pods to become ready make no progress. The zero value has seen no plan.
type Stall struct {
	step     string
	since    time.Time
	reported int64 // the generation
}

// Next returns the stall after a plan for a set. text is not empty when the updates have made no progress for the
// limit, once in a generation. Until then, after is when to look again.
func (s Stall) Next(
	set *appsv1beta1.SidecarSet, r Result, now time.Time, limit time.Duration,
) (next Stall, text string, after time.Duration) {
	step := ""
	for _, n := range r.Notes {
		if n.Code == NoteUpdateLimited {
			text = n.Text
			step = fmt.Sprint(set.Generation, r.Status.MatchedPods, r.Status.UpdatedPods, r.Status.UpdatedReadyPods)
		}
	}
	if s.step != step {
		s.step, s.since = step, now
	}
	if step == "" || s.reported == set.Generation {
		return s, "", 0
	}
	if rest := s.since.Add(limit).Sub(now); rest > 0 {
		return s, "", rest
	}
	s.reported = set.Generation
	return s, text, 0
}

// Stands reports whether the updates of the last plan have made no progress for the limit.
func (s Stall) Stands(now time.Time, limit time.Duration) bool {
	return s.step != "" && !s.since.Add(limit).After(now)
}
