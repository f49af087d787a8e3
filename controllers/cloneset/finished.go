package cloneset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// bury deletes pods that have finished, as evicted ones. They never run again, and as long as they are there, their name and
// their claims are of no use to their successors. Claims are dealt with as if somebody else had deleted the pod.
func (a *act) bury(ctx context.Context) error {
	var dead []*corev1.Pod
	for _, pod := range a.inactive {
		if a.isDead(pod) {
			dead = append(dead, pod)
		}
	}
	_, err := batches.Run(dead, func(pod *corev1.Pod) error {
		if err := a.client.Delete(ctx, pod.DeepCopy(), client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil {
			a.tell(corev1.EventTypeWarning, reasonFailedDelete, "failed to delete pod %s: %v", pod.Name, err)
			return fmt.Errorf("delete finished pod %s: %w", pod.Name, err)
		}
		a.podWrites.Deleted(a.key(), pod)
		a.tell(corev1.EventTypeNormal, reasonDeleted, "succeed to delete pod %s", pod.Name)
		return nil
	})
	return err
}

// isDead says that a pod has finished, and that nobody is to see it any more.
func (a *act) isDead(pod *corev1.Pod) bool {
	var hooked bool
	if hooks := a.set.Spec.Lifecycle; hooks != nil {
		hooked = lifecycle.HasAny(pod, hooks.PreDelete)
	}
	return isFinished(pod) && pod.DeletionTimestamp == nil && !hooked
}
