package binding

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
)

// WriteStatus writes the status of is, if it differs from that of was, and reports whether the API server has it. is
// gets the version of the answer. required is as for stored.MergeStatus. An object that is gone has not failed.
func (b *Binding) WriteStatus( //nolint:revive // a context besides four arguments
	ctx context.Context, kind stored.Kind, was, is client.Object, required map[string]any,
) (written bool, err error) {
	w, err := stored.WriteStatus(kind, was, is, required)
	if err != nil || w == nil {
		return false, err
	}
	answer, err := b.Send(ctx, client.ObjectKeyFromObject(was), w, kind)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write status: %w", err)
	}
	is.SetResourceVersion(answer.GetResourceVersion())
	return true, nil
}
