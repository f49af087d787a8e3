package launchpriority

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/launch"
)

// pod is one of the cache; nil where there is none.
func (r *Reconciler) pod(ctx context.Context, name types.NamespacedName) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := r.client.Get(ctx, name, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read pod: %w", err)
	}
	return pod, nil
}

// barrier is the ConfigMap that a pod waits for; nil where there is none. It is read when it is not remembered, or when the
// kubelet misses what should be in it. After a write the kubelet is given some time to find it: fresh is what is left of that.
func (r *Reconciler) barrier(ctx context.Context, pod *corev1.Pod) (barrier *corev1.ConfigMap, fresh time.Duration, err error) {
	name := client.ObjectKeyFromObject(pod)
	if known, is := r.memory.of(name, pod.UID); is {
		if !launch.MayBeStale(launch.Input{Pod: pod, Barrier: known.barrier, Policy: r.options.Policy}) {
			return known.barrier, 0, nil
		}
		if left := trust - r.options.Now().Sub(known.at); left > 0 {
			return known.barrier, left, nil
		}
	}
	barrier = &corev1.ConfigMap{}
	err = r.live().Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: launch.BarrierName(pod.Name)}, barrier)
	switch {
	case apierrors.IsNotFound(err):
		r.memory.forget(name)
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("read barrier: %w", err)
	}
	r.memory.keep(name, pod.UID, barrier, r.options.Now())
	return barrier, 0, nil
}

// isThere says whether a pod is the one that has its name now, by the API server.
func (r *Reconciler) isThere(ctx context.Context, pod *corev1.Pod) (bool, error) {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err := r.live().Get(ctx, client.ObjectKeyFromObject(pod), now)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read pod past the cache: %w", err)
	}
	return now.UID == pod.UID && now.DeletionTimestamp == nil, nil
}
