// Package podwrites returns a reconciler's own writes of pods in many namespaces while the cache lags. It is for an
// object that selects pods, as a SidecarSet does; the owner of pods in one namespace needs only a ledger.
package podwrites

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/lean"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// Writes are those of one object, which has one pass at a time.
type Writes struct {
	// ledger has the namespace as the owner.
	ledger *ledger.Ledger[*corev1.Pod]

	mu         sync.Mutex
	namespaces map[string]bool
}

// New returns Writes. The reader must read past the cache.
func New(live client.Reader, now func() time.Time) *Writes {
	return &Writes{ledger: lean.NewWrites(live, now), namespaces: map[string]bool{}}
}

// Record records the pod that the API server returned, for a patch or for a read past the cache.
func (w *Writes) Record(_ types.NamespacedName, written *write.Write, answer write.Object, err error) {
	if pod, is := answer.(*corev1.Pod); is && err == nil && pod.UID == written.Object.GetUID() {
		w.patched(pod)
	}
}

func (w *Writes) patched(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.namespaces[pod.Namespace] = true
	w.ledger.Patched(owner(pod.Namespace), pod)
}

// Overlay replaces pods, by their namespace, with what the writes made of them. Writes of a namespace without pods are
// forgotten: the cache has shown these pods before they were written, so they are gone.
func (w *Writes) Overlay(ctx context.Context, pods map[string][]*corev1.Pod) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for namespace := range w.namespaces {
		if len(pods[namespace]) == 0 {
			w.ledger.Forget(owner(namespace))
			delete(w.namespaces, namespace)
		}
	}
	for namespace, cached := range pods {
		written, _, err := w.ledger.Overlay(ctx, owner(namespace), cached)
		if err != nil {
			return err
		}
		pods[namespace] = written
	}
	return nil
}

func owner(namespace string) types.NamespacedName { return types.NamespacedName{Namespace: namespace} }
