package workloads

import (
	"errors"
	"fmt"

	"github.com/kruisekit/kruisekit/workload"
)

// failures returns the failures of a pass as two errors: those about the number of pods, and those about their updates.
// impossible are failures of the latter that no write caused: pods that can only be updated in place and cannot be, and
// pods of which what comes ahead of the update is not possible. Those that the error leaves out, because there are
// many, are not among them.
func failures(pass *workload.Pass) (impossible []workload.Failure, scaling, updating error) {
	var ofScaling, ofUpdates []workload.Failure
	for _, f := range pass.Failures() {
		if f.NotInPlace {
			f.Err = fmt.Errorf("pod %s can only be updated in place: %w", f.Object, f.Err)
		}
		if (f.NotInPlace || f.Ahead) && len(ofUpdates) < workload.MaxErrors {
			impossible = append(impossible, f)
		}
		if f.Scaling {
			ofScaling = append(ofScaling, f)
		} else {
			ofUpdates = append(ofUpdates, f)
		}
	}
	return impossible, workload.Err(ofScaling), workload.Err(ofUpdates)
}

// errOutdated ends a series of passes whose writes the API server finds outdated although each pass observes the pods
// again.
var errOutdated = errors.New(
	"pods are not what was observed, time and again: another writer changes them, or the cache stands still")

// mostOutdated is how many passes in a row may find that they were decided upon older objects.
const mostOutdated = 10

// outdated counts the passes in a row, this one included, that were decided upon older objects. Where they are too many
// it returns errOutdated, so that the pauses between them grow.
func outdated(pass *workload.Pass, before int) (count int, err error) {
	if !pass.IsOutdated() {
		return 0, nil
	}
	if before >= mostOutdated {
		err = errOutdated
	}
	return before + 1, err
}
