package launchpriority

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/launch"
)

// barrier is the ConfigMap that a pod waits for; nil where there is none. It is read when it is not remembered, or when the
// kubelet misses what should be in it. After a write the kubelet is given some time to find it: fresh is what is left of that.
func (r *Reconciler) barrier(ctx context.Context, pod *corev1.Pod) (barrier *corev1.ConfigMap, fresh time.Duration, err error) {
	name := client.ObjectKeyFromObject(pod)
	if known, is := r.memory.of(name, pod.UID); is {
		if !launch.MayBeStale(launch.Input{Pod: pod, Barrier: known.barrier, Policy: r.options.Policy}) {
			return known.barrier, 0, nil
		}
		if left := trust - r.api.Now().Sub(known.at); left > 0 {
			return known.barrier, left, nil
		}
	}
	barrier, err = stored.Find[corev1.ConfigMap](ctx, r.api.Live, types.NamespacedName{Namespace: pod.Namespace, Name: launch.BarrierName(pod.Name)})
	if err != nil {
		return nil, 0, err
	}
	if barrier == nil {
		r.memory.forget(name)
		return nil, 0, nil
	}
	r.memory.keep(name, pod.UID, barrier, r.api.Now())
	return barrier, 0, nil
}

// isThere says whether a pod is the one that has its name now, by the API server.
func (r *Reconciler) isThere(ctx context.Context, pod *corev1.Pod) (bool, error) {
	now, err := stored.Metadata(ctx, r.api.Live, corev1.SchemeGroupVersion.WithKind("Pod"), client.ObjectKeyFromObject(pod))
	return now != nil && now.UID == pod.UID && now.DeletionTimestamp == nil, err
}
