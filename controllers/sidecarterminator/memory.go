package sidecarterminator

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// memory has the requests that were made and that the cache may not show yet, by the UIDs of their pods. The zero value is empty.
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
