package pod

import (
	"context"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/launch"
)

// launch has the containers of a pod start in the order that it asks for.
func (*Webhook) launch(_ context.Context, r *round) (*corev1.Pod, error) {
	injection, faults := launch.Inject(r.pod, launch.Options{Suffix: suffix(r.uid)})
	if len(faults) > 0 {
		return nil, &UnfitError{Faults: faults}
	}
	for _, n := range injection.Notes {
		switch n.Code {
		case launch.NoteReplaced, launch.NoteStatic:
			r.warnings = append(r.warnings, fmt.Sprintf("launch priority: %s: %s", n.Object, n.Text))
		}
	}
	return injection.Pod, nil
}

// UnfitError is what of a pod cannot be.
type UnfitError struct{ Faults field.ErrorList }

// Error names the fields.
func (e *UnfitError) Error() string { return e.Faults.ToAggregate().Error() }

// suffix completes the name of a pod, by the request: of the letters that API servers use, so that no word comes out.
func suffix(uid types.UID) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	n, name := h.Sum64(), make([]byte, 5)
	for i := range name {
		name[i] = letters[n%uint64(len(letters))]
		n /= uint64(len(letters))
	}
	return string(name)
}
