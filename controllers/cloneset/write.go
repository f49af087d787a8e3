package cloneset

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// move writes what a move of the pod's state means for readiness, and then the state.
func (a *act) move(ctx context.Context, pod *corev1.Pod, m lifecycle.Move) error {
	var err error
	if m.Hold != "" {
		if pod, err = a.conditions(ctx, pod, m.Hold, lifecycle.Hold); err != nil {
			return err
		}
	}
	if m.Release != "" {
		if pod, err = a.conditions(ctx, pod, m.Release, lifecycle.Release); err != nil {
			return err
		}
	}
	if m.To == "" {
		return nil
	}
	patch, err := m.Patch(pod, a.now)
	if err != nil {
		return err
	}
	if _, err = a.patch(ctx, pod, merge(patch), write.Main); err != nil {
		return fmt.Errorf("move pod %s to %s: %w", pod.Name, m.To, err)
	}
	return nil
}

type conditionsOf func(*corev1.Pod, string, string, time.Time) ([]corev1.PodCondition, error)

func (a *act) conditions(ctx context.Context, pod *corev1.Pod, key string, of conditionsOf) (*corev1.Pod, error) {
	conditions, err := of(pod, pub.LifecycleUserAgent, key, a.now)
	if err != nil || len(conditions) == 0 {
		return pod, err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID}, "status": map[string]any{"conditions": conditions},
	})
	if err != nil {
		return pod, fmt.Errorf("encode conditions: %w", err)
	}
	return a.patch(ctx, pod, merge(patch), write.Status)
}

// labelHash adds the label of the hash to a pod from before it.
func (a *act) labelHash(ctx context.Context, pod *corev1.Pod) (bool, error) {
	name := pod.Labels[pub.PodRevisionLabelKey]
	if _, ok := pod.Labels[pub.PodTemplateHashLabelKey]; ok || name == "" {
		return false, nil
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q}}}`, pod.UID, pub.PodTemplateHashLabelKey, revision.Short(name))
	_, err := a.patch(ctx, pod, merge([]byte(patch)), write.Main)
	return err == nil, err
}

func (a *act) write(ctx context.Context, pod *corev1.Pod, w *write.Write) (*corev1.Pod, error) {
	patch, err := w.Data()
	if err != nil {
		return pod, err
	}
	fresh, err := a.patch(ctx, pod, client.RawPatch(types.JSONPatchType, patch), w.Subresource)
	if err != nil {
		return pod, fmt.Errorf("patch pod %s: %w", pod.Name, err)
	}
	return fresh, nil
}

// patch writes, and remembers what the API server answered.
func (a *act) patch(ctx context.Context, pod *corev1.Pod, patch client.Patch, subresource string) (*corev1.Pod, error) {
	fresh := pod.DeepCopy()
	var err error
	if subresource == "" {
		err = a.client.Patch(ctx, fresh, patch)
	} else {
		err = a.client.SubResource(subresource).Patch(ctx, fresh, patch)
	}
	if err != nil {
		return pod, err
	}
	a.podWrites.Patched(a.key(), fresh)
	a.replace(fresh)
	return fresh, nil
}

// untyped is the set to be patched: nobody decodes the answer, which may be what no CloneSet can be.
func (s *snapshot) untyped() *unstructured.Unstructured {
	object := stored.Untyped(gvk())
	object.SetNamespace(s.set.Namespace)
	object.SetName(s.set.Name)
	return object
}

func merge(patch []byte) client.Patch { return client.RawPatch(types.StrategicMergePatchType, patch) }
