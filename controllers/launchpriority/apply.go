package launchpriority

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/launch"
)

// act carries out one plan. It is the only part that writes.
type act struct {
	*Reconciler

	pod     *corev1.Pod
	barrier *corev1.ConfigMap
	plan    launch.Plan
}

// carryOut makes the writes of the plan in their order. An error leaves the rest to the next plan.
func (a *act) carryOut(ctx context.Context) error {
	if a.plan.Remove != "" {
		there, err := a.isThere(ctx, a.pod)
		if err != nil || !there {
			return err // the event of the pod that is there comes
		}
	}
	if err := a.remove(ctx); err != nil {
		return err
	}
	if err := a.create(ctx); err != nil {
		return err
	}
	if err := a.add(ctx); err != nil {
		return err
	}
	return a.complete(ctx)
}

func (a *act) remove(ctx context.Context) error {
	if a.plan.Remove == "" {
		return nil
	}
	former := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.barrier.Namespace, Name: a.barrier.Name}}
	err := a.api.Client.Delete(ctx, former, client.Preconditions{UID: &a.plan.Remove})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the barrier of a former pod: %w", err)
	}
	return nil
}

func (a *act) create(ctx context.Context) error {
	if a.plan.Create == nil {
		return nil
	}
	barrier := a.plan.Create.DeepCopy()
	if err := a.api.Client.Create(ctx, barrier); err != nil {
		return fmt.Errorf("create barrier: %w", err)
	}
	a.remember(barrier)
	return nil
}

func (a *act) add(ctx context.Context) error {
	if len(a.plan.Add) == 0 {
		return nil
	}
	patch, err := launch.AddPatch(a.barrier, a.plan.Add)
	if err != nil {
		return fmt.Errorf("encode keys: %w", err)
	}
	barrier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.barrier.Namespace, Name: a.barrier.Name}}
	if err := a.api.Client.Patch(ctx, barrier, client.RawPatch(launch.PatchType, patch)); err != nil {
		return fmt.Errorf("add keys to barrier: %w", err)
	}
	a.remember(barrier)
	return nil
}

func (a *act) remember(barrier *corev1.ConfigMap) {
	a.memory.keep(client.ObjectKeyFromObject(a.pod), a.pod.UID, barrier, a.api.Now())
}

// complete marks the pod, once: the cache may not know yet.
func (a *act) complete(ctx context.Context) error {
	name := client.ObjectKeyFromObject(a.pod)
	if known, is := a.memory.of(name, a.pod.UID); !a.plan.Complete || is && known.marked {
		return nil
	}
	patch, err := launch.CompletePatch(a.pod)
	if err != nil {
		return fmt.Errorf("encode mark: %w", err)
	}
	if err := a.api.Client.Patch(ctx, stored.MetadataOf(corev1.SchemeGroupVersion.WithKind("Pod"), name), client.RawPatch(launch.PatchType, patch)); err != nil {
		return fmt.Errorf("mark pod: %w", err)
	}
	a.memory.mark(name, a.pod.UID)
	return nil
}
