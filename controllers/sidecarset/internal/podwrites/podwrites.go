// Package podwrites returns a reconciler's own writes of pods in many namespaces while the cache lags. It is for an object that
// selects pods, as a SidecarSet does; the owner of pods in one namespace needs only a ledger.
package podwrites

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/lean"
	"github.com/kruisekit/kruisekit/ledger"
)

// Writes are those of one object, which has one pass at a time.
type Writes struct {
	// ledger has the namespace as the owner.
	ledger     *ledger.Ledger[*corev1.Pod]
	namespaces map[string]bool
}

// New returns Writes. The reader must read past the cache.
func New(live client.Reader, now func() time.Time) *Writes {
	return &Writes{ledger: lean.NewWrites(live, now), namespaces: map[string]bool{}}
}

// Patched records the pod that the API server returned for a patch.
func (w *Writes) Patched(pod *corev1.Pod) {
	w.namespaces[pod.Namespace] = true
	w.ledger.Patched(owner(pod.Namespace), pod)
}

// Overlay replaces pods, by their namespace, with what the writes made of them. Writes of a namespace without pods are forgotten:
// the cache has shown these pods before they were written, so they are gone.
func (w *Writes) Overlay(ctx context.Context, pods map[string][]*corev1.Pod) error {
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
