package workloadspread

import (
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/write"
)

// statusWrite returns the write of the status, nil if the status has not changed. The API server refuses the write
// where admission has recorded a pod since. A generation is observed when the costs of the pods stand, so that a
// scale-in after it deletes the right pods.
func (s *snapshot) statusWrite(p *pass, marked bool) (*write.Write, error) {
	after := *s.spread
	after.Status = p.status
	if p.more || !marked {
		after.Status.ObservedGeneration = s.spread.Status.ObservedGeneration
	}
	return stored.WriteStatusVersion(stored.Kind{GVK: workloadspread.Kind()}, s.spread, &after, nil)
}
