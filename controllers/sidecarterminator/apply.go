package sidecarterminator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar/finish"
)

// act carries out one plan. It is the only part that writes.
type act struct {
	*Reconciler

	pod  *corev1.Pod
	plan finish.Plan
}

// outdated says that a write failed because something is no longer as it was seen.
func outdated(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

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
	if err := a.client.Patch(ctx, a.target(), client.RawPatch(finish.PatchType, patch)); err != nil {
		return fmt.Errorf("write images of pod: %w", err)
	}
	a.tell()
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
	if err := a.client.Status().Patch(ctx, a.target(), client.RawPatch(finish.PatchType, patch)); err != nil {
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
		if err := a.client.Delete(ctx, former, client.Preconditions{UID: &a.plan.Delete}); err != nil {
			return fmt.Errorf("delete request: %w", err)
		}
	}
	made := a.plan.Create.DeepCopy()
	err := a.client.Create(ctx, made)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("create request: %w", err)
	}
	a.memory.keep(a.pod.UID, made, a.options.Now())
	a.plan.RequeueAfter = patience // by then nothing stands between the plan and the cache
	a.tell()
	return nil
}

// target is the pod to be written, of whose answer only the metadata matters.
func (a *act) target() *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: a.pod.Namespace, Name: a.pod.Name}}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return pod
}

// tell makes the event of the plan.
func (a *act) tell() {
	if a.options.Recorder != nil {
		a.options.Recorder.Event(a.pod, corev1.EventTypeNormal, finish.EventReason, a.plan.Event)
	}
}

// explain tells why the plan is as it is.
func (a *act) explain(ctx context.Context) {
	logger := log.FromContext(ctx).V(1)
	if !logger.Enabled() {
		return
	}
	for _, note := range a.plan.Notes {
		logger.Info("Note", "code", note.Code, "object", note.Object, "text", note.Text)
	}
}
