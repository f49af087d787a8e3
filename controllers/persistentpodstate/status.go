package persistentpodstate

import (
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
)

// report returns the write of the status, if the status changed.
func (p *plan) report() (pass, error) {
	if !p.hasRecords(p.state) {
		return nil, nil
	}
	p.record(p.state)
	is := *p.state
	is.Status = p.records.Status
	required := map[string]any{"observedGeneration": p.state.Generation}
	w, err := statuspatch.Write(kind(), p.state, &is, required)
	if err != nil {
		return nil, err
	}
	p.reported = true
	if w == nil {
		return nil, nil
	}
	p.status = driver.Writes(w)
	return p.status, nil
}
