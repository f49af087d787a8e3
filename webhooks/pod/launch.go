package pod

import (
	"context"
	"fmt"
	"hash/fnv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/launch"
)

// Launch returns the step that orders the start of containers.
func Launch() Step {
	return Step{Name: scope.Launch().Step, Apply: func(_ context.Context, r Request) (Result, error) {
		injection, faults := launch.Inject(r.Pod, launch.Options{Suffix: suffix(r.UID)})
		if len(faults) > 0 {
			return Result{}, invalidFields(faults)
		}
		result := Result{Pod: injection.Pod}
		for _, n := range injection.Notes {
			switch n.Code {
			case launch.NoteReplaced, launch.NoteStatic:
				result.Warnings = append(result.Warnings, fmt.Sprintf("launch priority: %s: %s", n.Object, n.Text))
			}
		}
		return result, nil
	}}
}

// invalidFields rejects a pod because of its own fields. The API server has not validated the pod yet: there may be any
// number of faults.
func invalidFields(faults field.ErrorList) *InvalidError {
	faults, rest := review.First(faults)
	e := &InvalidError{Err: faults.ToAggregate()}
	if rest != "" {
		e.Err = fmt.Errorf("%w%s", e.Err, rest)
	}
	for _, fault := range faults {
		e.Causes = append(e.Causes, metav1.StatusCause{
			Type: metav1.CauseType(fault.Type), Field: fault.Field, Message: fault.ErrorBody(),
		})
	}
	return e
}

// suffix completes the name of a pod by the request. It uses the letters of API servers, which form no words.
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
