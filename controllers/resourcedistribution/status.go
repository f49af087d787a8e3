package resourcedistribution

import (
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// report returns the write of the status, if the status changed.
func (p *plan) report() (pass, error) {
	is := *p.object
	is.Status = p.copies.of.Status(p.object.Status, p.object.Generation, p.input.Now)
	w, err := statuspatch.Write(stored.Kind{GVK: gvk()}, p.object, &is, nil)
	if err != nil || w == nil {
		return nil, err
	}
	return driver.Writes(w), nil
}
