package cloneset

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/write"
)

// removeClaims deletes the claims of a pod that was deleted.
func (a *act) removeClaims(ctx context.Context, pod *corev1.Pod) error {
	id := pod.Labels[pub.CloneSetInstanceIDKey]
	if id == "" {
		return nil // else every claim without the label would be taken for this pod's
	}
	for _, claim := range a.claims {
		if claim.Labels[pub.CloneSetInstanceIDKey] != id {
			continue
		}
		if err := a.removeClaim(ctx, claim); err != nil {
			return err
		}
	}
	return nil
}

func (a *act) removeClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	err := a.client.Delete(ctx, claim.DeepCopy(), client.Preconditions{UID: &claim.UID})
	if client.IgnoreNotFound(err) != nil {
		a.tell(corev1.EventTypeWarning, reasonFailedDelete, "failed to clean up pvc %s: %v", claim.Name, err)
		return fmt.Errorf("delete claim %s: %w", claim.Name, err)
	}
	a.claimWrites.Deleted(a.key(), claim)
	return nil
}

// disown ends, where claims are not reused, the ownership of claims whose pod is going: they go with it. Claims of pods that
// are gone are deleted.
func (a *act) disown(ctx context.Context) error {
	if a.set.Spec.ScaleStrategy.EnablePVCReuse || len(a.claims) == 0 {
		return nil
	}
	active, going := map[string]bool{}, map[string]*corev1.Pod{}
	for _, pod := range a.inactive {
		going[pod.Labels[pub.CloneSetInstanceIDKey]] = pod
	}
	for _, pod := range a.pods {
		active[pod.Labels[pub.CloneSetInstanceIDKey]] = true
	}
	for _, id := range a.unborn() {
		active[id] = true
	}
	var kept []*corev1.PersistentVolumeClaim
	var loose []*corev1.PersistentVolumeClaim
	for _, claim := range a.claims {
		if id := claim.Labels[pub.CloneSetInstanceIDKey]; id != "" && active[id] {
			kept = append(kept, claim)
		} else {
			loose = append(loose, claim)
		}
	}
	a.claims = kept
	_, err := batches.Run(loose, func(claim *corev1.PersistentVolumeClaim) error {
		id := claim.Labels[pub.CloneSetInstanceIDKey]
		if pod := going[id]; pod != nil && id != "" {
			return a.handOver(ctx, claim, pod)
		}
		return a.removeClaim(ctx, claim)
	})
	return err
}

// handOver makes a pod the owner of a claim.
func (a *act) handOver(ctx context.Context, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) error {
	owner := *metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             claim.UID,
		"ownerReferences": []any{map[string]any{"$patch": "delete", "uid": a.set.UID}, owner},
	}})
	if err != nil {
		return fmt.Errorf("encode owner: %w", err)
	}
	fresh := claim.DeepCopy()
	err = a.client.Patch(ctx, fresh, merge(patch))
	if client.IgnoreNotFound(err) != nil {
		a.tell(corev1.EventTypeWarning, reasonFailedUpdate, "failed to update pvc %s: %v", claim.Name, err)
		return fmt.Errorf("hand claim %s over to pod %s: %w", claim.Name, pod.Name, err)
	}
	if err == nil {
		a.claimWrites.Patched(a.key(), fresh) // else it is handed over again until the cache knows
	}
	return nil
}

// release gives up pods that the selector no longer matches.
func (a *act) release(ctx context.Context) error {
	_, err := batches.Run(a.strays, func(pod *corev1.Pod) error {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[{"$patch":"delete","uid":%q}]}}`, pod.UID, a.set.UID)
		_, err := a.patch(ctx, pod, merge([]byte(patch)), write.Main)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("release pod %s: %w", pod.Name, err)
		}
		return nil
	})
	return err
}
