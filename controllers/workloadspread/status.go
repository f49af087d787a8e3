package workloadspread

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/write"
)

// attempts at a status that admission writes at the same time.
const attempts = 5

// kind is that of WorkloadSpreads.
func kind() stored.Kind { return stored.Kind{GVK: workloadspread.Kind()} }

// report returns the write of the status, if the status changed. A generation is observed when the costs of the pods
// stand, so that a scale-in after it deletes the right pods.
func (p *planned) report(now time.Time) (*write.Write, error) {
	p.decided = plan(p.snapshot, now)
	is := *p.spread
	is.Status = p.decided.status
	if p.unmarked {
		is.Status.ObservedGeneration = p.spread.Status.ObservedGeneration
	}
	return statuspatch.WriteVersion(kind(), p.spread, &is, nil)
}

// read takes the WorkloadSpread as it is stored.
func (s *snapshot) read(raw *unstructured.Unstructured) (err error) {
	s.spread, _, err = stored.Decode[subset.Spread](raw)
	return err
}
