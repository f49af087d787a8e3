package sidecarterminator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar/finish"
)

// act carries out one plan. It is the only part that writes.
type act struct {
	*Reconciler

	pod  *corev1.Pod
	plan finish.Plan
}

// carryOut makes the writes of the plan in their order. An error leaves the rest to the next plan.
func (a *act) carryOut(ctx context.Context) error {
	if err := a.setImages(ctx); err != nil {
		return err
	}
	if err := a.settle(ctx); err != nil {
		return err
	}
	return a.request(ctx)
}

func (a *act) setImages(ctx context.Context) error {
	if len(a.plan.Images) == 0 {
		return nil
	}
	patch, err := finish.ImagesPatch(a.pod, a.plan.Images)
	if err != nil {
		return fmt.Errorf("encode images: %w", err)
	}
	if err := a.api.Client.Patch(ctx, a.target(), client.RawPatch(finish.PatchType, patch)); err != nil {
		return fmt.Errorf("write images of pod: %w", err)
	}
	a.api.Event(a.pod, corev1.EventTypeNormal, finish.EventReason, a.plan.Event)
	return nil
}

func (a *act) settle(ctx context.Context) error {
	if a.plan.Status == nil {
		return nil
	}
	patch, err := finish.StatusPatch(a.pod, a.plan.Status)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	if err := a.api.Client.Status().Patch(ctx, a.target(), client.RawPatch(finish.PatchType, patch)); err != nil {
		return fmt.Errorf("write status of pod: %w", err)
	}
	return nil
}

// request makes the request of the plan. One that the cache did not show yet is as good.
func (a *act) request(ctx context.Context) error {
	if a.plan.Create == nil {
		return nil
	}
	if a.plan.Delete != "" {
		former := stored.Untyped(gvk())
		former.SetNamespace(a.plan.Create.Namespace)
		former.SetName(a.plan.Create.Name)
		if err := a.api.Client.Delete(ctx, former, client.Preconditions{UID: &a.plan.Delete}); err != nil {
			return fmt.Errorf("delete request: %w", err)
		}
	}
	made := a.plan.Create.DeepCopy()
	err := a.api.Client.Create(ctx, made)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("create request: %w", err)
	}
	a.memory.keep(a.pod.UID, made, a.api.Now())
	a.plan.RequeueAfter = patience // by then nothing stands between the plan and the cache
	a.api.Event(a.pod, corev1.EventTypeNormal, finish.EventReason, a.plan.Event)
	return nil
}

// target is the pod to be written, of whose answer only the metadata matters.
func (a *act) target() *metav1.PartialObjectMetadata {
	return stored.MetadataOf(corev1.SchemeGroupVersion.WithKind("Pod"), client.ObjectKeyFromObject(a.pod))
}
