package sidecarterminator

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// observe is what the decision about a pod looks at; nil when there is nothing to decide. Objects in it are the
// cache's.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*finish.Input, error) {
	pod, err := stored.Find[corev1.Pod](ctx, r.api.Client, name)
	if err != nil || pod == nil || !finish.Concerns(pod) {
		return nil, err
	}
	in := &finish.Input{Pod: pod, Now: r.api.Now()}
	if pod.Spec.NodeName != "" {
		if in.Node, err = stored.Find[corev1.Node](ctx, r.api.Client,
			types.NamespacedName{Name: pod.Spec.NodeName}); err != nil {
			return nil, err
		}
	}
	in.Request, err = r.request(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: finish.RequestName(pod.UID)})
	if in.Request != nil {
		r.memory.seen(pod.UID, in.Request.UID)
	}
	if newer := r.memory.newer(pod.UID, in.Now); newer != nil {
		in.Request = newer
	}
	return in, err
}

// request is one of the cache; nil where there is none. A malformed one has no containers, so that it stops none.
func (r *Reconciler) request(
	ctx context.Context, name types.NamespacedName,
) (*v1beta1.ContainerRecreateRequest, error) {
	request, _, err := stored.Read[v1beta1.ContainerRecreateRequest](ctx, r.api.Cached, gvk(), name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read request %s: %w", name.Name, err)
	}
	return request, nil
}

// memory has the requests that were made and that the cache may not show yet, by the UIDs of their pods. The zero value
// is empty.
type memory struct {
	mu   sync.Mutex
	pods map[types.UID]made
}

type made struct {
	request *v1beta1.ContainerRecreateRequest
	at      time.Time
}

// keep remembers a request for as long as the cache may take. What is older is dropped.
func (m *memory) keep(pod types.UID, request *v1beta1.ContainerRecreateRequest, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods == nil {
		m.pods = map[types.UID]made{}
	}
	maps.DeleteFunc(m.pods, func(_ types.UID, one made) bool { return now.Sub(one.at) >= patience })
	m.pods[pod] = made{request, now}
}

// seen drops a request that the cache shows, or that is gone.
func (m *memory) seen(pod, request types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one, is := m.pods[pod]; is && one.request.UID == request {
		delete(m.pods, pod)
	}
}

// newer is the request of a pod that was made after what the cache shows; nil for none. It is not to be changed.
func (m *memory) newer(pod types.UID, now time.Time) *v1beta1.ContainerRecreateRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one, is := m.pods[pod]; is && now.Sub(one.at) < patience {
		return one.request
	}
	return nil
}
