package cloneset

import (
	"context"
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

// move makes the writes of a move of the pod's state.
func (a *act) move(ctx context.Context, pod *corev1.Pod, m lifecycle.Move) error {
	for range maxMoveWrites {
		w, err := m.Next(pod, a.now)
		if err == nil && w != nil {
			pod, err = a.write(ctx, pod, w)
		}
		if write.IsOutdated(err) {
			a.wake(time.Second) // by then the cache shows what the write was not decided upon
			return nil
		}
		if err != nil {
			return fmt.Errorf("move pod %s to %s: %w", pod.Name, m.To, err)
		}
		if w == nil {
			return nil
		}
	}
	return nil // a webhook reverts what is written: the next pass tries again
}

// maxMoveWrites are those of a move that holds, releases and changes the state.
const maxMoveWrites = 3

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
