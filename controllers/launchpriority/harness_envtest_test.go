//go:build envtest

package launchpriority_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/launchpriority"
	"github.com/kruisekit/kruisekit/launch"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

type bench struct{ *podbench.Bench }

// newBench has no reconciler yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	return &bench{podbench.New(t, cluster.Options{})}
}

// plain is the client of a reconciler as it is.
func plain(c client.WithWatch) client.Client { return c }

// reconcile starts a reconciler and gives what stops it.
func (b *bench) reconcile(wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := launchpriority.New(wrap(c), launchpriority.Options{})
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 4})
	})
}

// written returns the writes since the last call, a repeated one once: a cache that lags repeats the mark of a pod.
func (b *bench) written() []string {
	isRead := func(asked string) bool { return strings.HasPrefix(asked, "GET ") }
	return slices.Compact(slices.DeleteFunc(b.Asked(), isRead))
}

// pod makes one with these priorities, as admission leaves it. "Ordered" stands for as many containers in their order.
func (b *bench) pod(name string, change func(*corev1.Pod), priorities ...string) *corev1.Pod {
	b.Helper()
	return b.Pod(name, func(pod *corev1.Pod) {
		pod.Spec.Containers = nil
		for i, n := range priorities {
			c := corev1.Container{Name: string(rune('a' + i)), Image: "app:1"}
			if n != "Ordered" && n != "" {
				c.Env = []corev1.EnvVar{{Name: kruise.ContainerLaunchPriorityEnvName, Value: n}}
			}
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
		if priorities[0] == "Ordered" {
			pod.Annotations[kruise.ContainerLaunchPriorityKey] = "Ordered"
		}
		if change != nil {
			change(pod)
		}
		injection, faults := launch.Inject(pod, launch.Options{})
		if len(faults) > 0 {
			b.Fatal(faults.ToAggregate())
		}
		if injection.Pod != nil {
			*pod = *injection.Pod
		}
	})
}

// barrier is that of a pod; nil for none.
func (b *bench) barrier(pod *corev1.Pod) *corev1.ConfigMap {
	b.Helper()
	barrier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: launch.BarrierName(pod.Name)}}
	err := b.Look(barrier)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		b.Fatal(err)
	}
	return barrier
}

// keys of the barrier of a pod.
func (b *bench) keys(pod *corev1.Pod) []string {
	b.Helper()
	var keys []string
	if barrier := b.barrier(pod); barrier != nil {
		for k := range barrier.Data {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// has waits until the barrier of a pod has these keys, and returns it.
func (b *bench) has(pod *corev1.Pod, keys ...string) *corev1.ConfigMap {
	b.Helper()
	b.Until(func() error {
		if got := b.keys(pod); !slices.Equal(got, keys) {
			return fmt.Errorf("%s has %q, want %q", pod.Name, got, keys)
		}
		return nil
	})
	return b.barrier(pod)
}

// complete waits until a pod is marked.
func (b *bench) complete(pod *corev1.Pod) {
	b.Helper()
	b.Until(func() error {
		if err := b.Look(pod); err != nil {
			return err
		}
		if pod.Annotations[kruise.ContainerLaunchPriorityCompletedKey] != "true" {
			return fmt.Errorf("%s is not complete", pod.Name)
		}
		return nil
	})
}

// set puts containers of a pod in a state.
func (b *bench) set(pod *corev1.Pod, state func(*corev1.ContainerStatus), names ...string) {
	b.Helper()
	b.Status(pod, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodRunning
		for _, name := range names {
			i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
			if i < 0 {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name})
				i = len(pod.Status.ContainerStatuses) - 1
			}
			pod.Status.ContainerStatuses[i].State = corev1.ContainerState{}
			state(&pod.Status.ContainerStatuses[i])
		}
	})
}

func ready(s *corev1.ContainerStatus) {
	s.Ready, s.State.Running = true, &corev1.ContainerStateRunning{}
}

func blocked(s *corev1.ContainerStatus) {
	s.Ready, s.State.Waiting = false, &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}
}

// kubelet starts the containers of a pod whose keys are there, one after the other, until all are ready; it returns the
// order.
func (b *bench) kubelet(pod *corev1.Pod) (order []string) {
	b.Helper()
	for len(order) < len(pod.Spec.Containers) {
		b.Until(func() error {
			keys := b.keys(pod)
			var start, wait []string
			for _, c := range pod.Spec.Containers {
				switch key := c.Env[len(c.Env)-1].ValueFrom.ConfigMapKeyRef.Key; {
				case slices.Contains(order, c.Name):
				case slices.Contains(keys, key):
					start = append(start, c.Name)
				default:
					wait = append(wait, c.Name)
				}
			}
			if len(start) == 0 {
				return fmt.Errorf("%s: %q are up, nothing can start by %q", pod.Name, order, keys)
			}
			b.set(pod, blocked, wait...)
			b.set(pod, ready, start...)
			order = append(order, start...)
			return nil
		})
	}
	return order
}
