package markers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// CatchUp is how long a reconciler waits for the cache to have the write of another client.
	CatchUp = time.Second
	// ReasonFailedMark is the reason of the event of a pod that the API server does not let be marked.
	ReasonFailedMark = "FailedMark"
)

// Mark writes the results of probes to the pods of an owner, and returns when to look again. A pod that cannot be
// marked holds up no other pod. The same mark again changes nothing.
func Mark(
	ctx context.Context, api *binding.Binding, owner types.NamespacedName, writes []*write.Write,
) (requeueAfter time.Duration, err error) {
	var failed []error
	for i, answer := range api.SendEach(ctx, owner, writes) {
		switch pod := writes[i].Object; {
		case answer.Err == nil:
		case write.IsOutdated(answer.Err):
			requeueAfter = CatchUp
		case write.IsFinal(answer.Err): // the API server would refuse the same mark again
			api.Warningf(pod, ReasonFailedMark, "Failed to mark the pod with results of probes: %v", answer.Err)
		default:
			failed = append(failed, fmt.Errorf("mark pod %s/%s: %w", pod.GetNamespace(), pod.GetName(), answer.Err))
		}
	}
	return requeueAfter, errors.Join(failed...)
}
