package pod

import (
	"context"
	"fmt"

	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// Liveness returns the step that moves the liveness probes of pods that ask for it into an annotation. The kubelet then
// restarts no container because of them. The step leaves all pods as they are if it is off.
func Liveness(on bool) Step {
	return Step{Name: scope.Liveness().Step, Apply: func(_ context.Context, r Request) (Result, error) {
		if !on || !ownedByKruise(r.Pod) {
			return Result{}, nil
		}
		next, names, err := podprobe.DetachLiveness(r.Pod)
		if err != nil || next == nil {
			return Result{}, err
		}
		result := Result{Pod: next}
		for _, name := range names {
			result.Warnings = append(result.Warnings,
				fmt.Sprintf("liveness: the kubelet does not run the livenessProbe of container %s", name))
		}
		return result, nil
	}}
}
