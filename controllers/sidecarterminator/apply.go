package sidecarterminator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/write"
)

// execute sends the writes of an action in their order. An error leaves the rest to the next action.
func (r *Reconciler) execute(ctx context.Context, in finish.Input, action *finish.Action) error {
	for _, w := range action.Writes(in) {
		object, err := runtimeclient.Send(ctx, r.api.Client, w)
		switch {
		case w.Verb == write.Create && apierrors.IsAlreadyExists(err): // the cache did not show it yet
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", describe(w), err)
		}
		if made, is := object.(*v1beta1.ContainerRecreateRequest); is {
			r.memory.keep(in.Pod.UID, made, r.api.Now())
			action.RequeueAfter = patience // by then nothing stands between the plan and the cache
		}
		if w.Verb == write.Create || w.Verb == write.Patch && w.Subresource == write.Main {
			r.api.Event(in.Pod, corev1.EventTypeNormal, finish.EventReason, action.Event)
		}
	}
	return nil
}

// describe names a write in errors.
func describe(w *write.Write) string {
	switch {
	case w.Verb == write.Create:
		return "create request"
	case w.Verb == write.Delete:
		return "delete request"
	case w.Subresource == write.Status:
		return "write status of pod"
	}
	return "write images of pod"
}
