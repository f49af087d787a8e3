//go:build envtest

package sidecarterminator_test

import (
	"flag"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/controllers/sidecarterminator"
	"github.com/kruisekit/kruisekit/test/podbench"
)

var seed = flag.Int64("seed", 0, "repeats the faults of an earlier run; 0 for new ones")

// Whatever is lost, on the way to the API server or back, every sidecar is asked to stop in its turn.
func TestFaults(t *testing.T) {
	b := newBench(t, nil)
	f := b.Faults(*seed)
	b.reconcile(sidecarterminator.Options{}, func(c client.WithWatch) client.Client { return podbench.Writes(c, f.Do) })
	var pods []*corev1.Pod
	for i := range 15 {
		pods = append(pods,
			b.pod(fmt.Sprintf("job-%d", i), corev1.RestartPolicyNever, []string{kill}, []string{kill, ignore}))
	}
	for _, pod := range pods {
		b.end(pod, 0, "app")
	}
	for _, pod := range pods {
		b.asks(pod, "s1")
		b.end(pod, 0, "s1")
	}
	for _, pod := range pods {
		b.asks(pod, "s2")
		if err := b.Look(pod); err != nil || pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("%s is %s: %v", pod.Name, pod.Status.Phase, err)
		}
	}
}
