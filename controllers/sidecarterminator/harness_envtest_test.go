//go:build envtest

package sidecarterminator_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

type request = v1beta1.ContainerRecreateRequest

const (
	kill   = kruise.TerminateSidecarEnvName
	image  = kruise.TerminateSidecarWithImageEnvName
	ignore = kruise.TerminateSidecarIgnoreExitCodeEnvName
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

type bench struct{ *podbench.Bench }

// newBench has a node and no reconciler yet.
func newBench(t *testing.T, labels map[string]string) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{podbench.New(t, cluster.Options{CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_containerrecreaterequests.yaml",
	}})}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.Namespace, Labels: labels}} // where podbench has its pods
	if err := b.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Client.Delete(context.WithoutCancel(b.Context()), node) })
	return b
}

// start has a reconciler.
func start(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, nil)
	b.reconcile(sidecarterminator.Options{}, plain)
	return b
}

func plain(c client.WithWatch) client.Client { return c }

func (b *bench) reconcile(o sidecarterminator.Options, wrap func(client.WithWatch) client.Client) {
	b.Helper()
	b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := sidecarterminator.New(wrap(c), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 3})
	})
}

// pod has a main container and sidecars of these kinds, all running.
func (b *bench) pod(name string, policy corev1.RestartPolicy, sidecars ...[]string) *corev1.Pod {
	b.Helper()
	pod := b.Pod(name, func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = policy
		for i, variables := range sidecars {
			c := corev1.Container{Name: fmt.Sprintf("s%d", i+1), Image: "sidecar:1"}
			for _, v := range variables {
				value := "true"
				if v == image {
					value = "exit:1"
				}
				c.Env = append(c.Env, corev1.EnvVar{Name: v, Value: value})
			}
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	})
	b.Status(pod, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodRunning
		for _, c := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name:        c.Name,
				ContainerID: "fake://" + c.Name,
				State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			})
		}
	})
	return pod
}

// end has a container end.
func (b *bench) end(pod *corev1.Pod, code int32, names ...string) {
	b.Helper()
	b.Status(pod, func(pod *corev1.Pod) {
		for i := range pod.Status.ContainerStatuses {
			for _, name := range names {
				if s := &pod.Status.ContainerStatuses[i]; s.Name == name {
					s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
						ExitCode: code, FinishedAt: metav1.Now(), ContainerID: s.ContainerID,
					}}
				}
			}
		}
	})
}

// request is that of a pod; nil for none.
func (b *bench) request(pod *corev1.Pod) *request {
	b.Helper()
	r := &request{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: finish.RequestName(pod.UID)}}
	err := b.Look(r)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		b.Fatal(err)
	}
	return r
}

// asks waits until the request of a pod is for these containers, and gives it.
func (b *bench) asks(pod *corev1.Pod, names ...string) *request {
	b.Helper()
	var r *request
	b.Until(func() error {
		if r = b.request(pod); r == nil {
			return fmt.Errorf("there is no request for %s", pod.Name)
		}
		var got []string
		for _, c := range r.Spec.Containers {
			got = append(got, c.Name)
		}
		if fmt.Sprint(got) != fmt.Sprint(names) {
			return fmt.Errorf("the request is for %q, want %q", got, names)
		}
		return nil
	})
	return r
}
