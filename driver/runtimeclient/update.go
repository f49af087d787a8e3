package runtimeclient

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/inplace"
)

// Update brings one pod to a revision in place as far as that goes now: it begins the update of u, or continues the one
// that has begun, and returns the pod as the last write left it with what to do next. The verdict is Wait, Complete,
// Ignore or Recreate. Call Update again when the pod changes, and after Action.After. A pod that has changed since it
// was observed is waited for.
//
// Update sends to the pod alone, and reads nothing. With a Recording the next pass counts the pod as it is now. For
// another clock or for events, call driver.UpdatePod with a sender of your own.
func Update(
	ctx context.Context, c client.Client, u inplace.Update, p inplace.Policy,
) (*corev1.Pod, inplace.Action, error) {
	//nolint:forbidigo // driver.UpdatePod takes another clock
	return driver.UpdatePod(ctx, Sender(c, c), u, driver.PodOptions{Policy: p, Now: time.Now})
}
