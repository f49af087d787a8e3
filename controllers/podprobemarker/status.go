package podprobemarker

import (
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
)

// report returns the write of the status, if the status changed.
func (p *plan) report() (pass, error) {
	if p.status == nil {
		return nil, nil
	}
	is := *p.marker
	is.Status = *p.status
	required := map[string]any{"observedGeneration": p.status.ObservedGeneration}
	w, err := statuspatch.Write(kind(), p.marker, &is, required)
	if err != nil {
		return nil, err
	}
	return p.unlessOutdated(markers.Write(w)), nil
}
