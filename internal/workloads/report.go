package workloads

import (
	"encoding/json"
	"errors"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
)

// Converted returns conditions as others, whose fields have the same names in JSON.
func Converted[To any](from any) (to To) {
	text, _ := json.Marshal(from) //nolint:errchkjson // strings and times
	_ = json.Unmarshal(text, &to)
	return to
}

// Stall reports in the condition Stalled why a workload stands still. sameRevision means that the workload goes to the
// same revision as the stored status does.
func (p *Plan) Stall(o *Observation, list *conditions.List, sameRevision bool) {
	var headline note.Note
	if p.Runs(o) {
		headline, _ = note.Headline(p.Notes())
	}
	before := o.Known.wait
	if !sameRevision {
		before = conditions.Wait{}
	}
	p.wait = before.Next(headline, p.Pass.Counts().UpdatedPods, o.Now)
	p.After.In(conditions.Stall(list, conditions.Stalling{
		Now: o.Now, Headline: headline, Wait: p.wait, SameRevision: sameRevision,
	}))
}

// Collisions returns the collision count of a status after a pass failed. Where the name of the revision is taken, the
// next pass resolves another one.
func Collisions(before *int32, why error) *int32 {
	var taken *revision.TakenError
	if !errors.As(why, &taken) {
		return before
	}
	return ptr.To(ptr.Deref(before, 0) + 1)
}
