package execution

import (
	"errors"

	"github.com/kruisekit/kruisekit/workload"
)

// ErrOutdated ends a series of passes whose writes the API server finds outdated although each pass observes the pods again.
var ErrOutdated = errors.New("pods are not what was observed, time and again: another writer changes them, or the cache stands still")

// mostOutdated is how many passes in a row may find that they were decided upon older objects.
const mostOutdated = 10

// Outdated counts the passes in a row, this one included, that were decided upon older objects. Where they are too many it
// returns ErrOutdated, so that the pauses between them grow.
func Outdated(pass *workload.Pass, before int) (count int, err error) {
	if !pass.IsOutdated() {
		return 0, nil
	}
	if before >= mostOutdated {
		err = ErrOutdated
	}
	return before + 1, err
}
