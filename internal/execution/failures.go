package execution

import (
	"fmt"

	"github.com/kruisekit/kruisekit/workload"
)

// Errors returns the failures of a pass as two errors: those about the number of pods, and those about their updates. impossible is
// called with the failures of the latter that no write caused: pods that can only be updated in place and cannot be, and pods of which what comes
// ahead of the update is not possible. It is not called with those that the error leaves out, because there are many.
func Errors(pass *workload.Pass, impossible func(workload.Failure)) (scaling, updating error) {
	var ofScaling, ofUpdates []workload.Failure
	for _, f := range pass.Failures() {
		if f.NotInPlace {
			f.Err = fmt.Errorf("pod %s can only be updated in place: %w", f.Object, f.Err)
		}
		if (f.NotInPlace || f.Ahead) && len(ofUpdates) < workload.MaxErrors {
			impossible(f)
		}
		if f.Scaling {
			ofScaling = append(ofScaling, f)
		} else {
			ofUpdates = append(ofUpdates, f)
		}
	}
	return workload.Err(ofScaling), workload.Err(ofUpdates)
}
