package persistentpodstate

import (
	"encoding/json"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// report adds the write of a status that has changed. The API server refuses a status that follows from an older
// object. A status that is too large to be stored is not written.
func (p *plan) report(state *podstate.State, status v1beta1.PersistentPodStateStatus) (err error) {
	next := *state
	next.Status = status
	required := map[string]any{"observedGeneration": status.ObservedGeneration}
	if p.status, err = stored.WriteStatusVersion(kind(), state, &next, required); p.status == nil {
		return err
	}
	text, err := json.Marshal(status)
	if len(text) > podstate.MostBytes {
		p.status, p.notes = nil, nil // they are about the records
		p.block(reasonTooLarge, "The records would take too much room; name fewer keys, or split the workload")
	}
	return err
}
