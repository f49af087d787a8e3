//go:build envtest

package launchpriority_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/podbench"
)

// staleReader has a pod as it was.
type staleReader struct {
	client.Client

	stale *corev1.Pod
}

func (s staleReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if pod, is := o.(*corev1.Pod); is && key == client.ObjectKeyFromObject(s.stale) {
		s.stale.DeepCopyInto(pod)
		return nil
	}
	return s.Client.Get(ctx, key, o, opts...)
}

// Whatever is lost, on the way to the API server or back, every pod starts in its order, also over the barrier of a
// former one.
func TestFaults(t *testing.T) {
	b := newBench(t)
	f := b.Faults(0)
	b.reconcile(func(c client.WithWatch) client.Client {
		return podbench.Reads(podbench.Writes(c, f.Do), f.Do)
	})
	for round := range 2 {
		for i := range 8 {
			pod := b.pod(fmt.Sprintf("web-%d", i), nil, "Ordered", "Ordered", "Ordered")
			b.has(pod, "p_0")
			if got := fmt.Sprint(b.kubelet(pod)); got != "[a b c]" {
				t.Errorf("round %d: %s starts as %s", round, pod.Name, got)
			}
			b.complete(pod)
			b.Gone(pod)
		}
	}
}
