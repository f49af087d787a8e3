//go:build simulated

package simulated_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/simulated"
)

// world is a control plane with simulated nodes.
type world struct {
	kubernetes.Interface
}

// newWorld starts one and ends it with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := binaries.Open()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := store.Paths(binaries.Simulated)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := simulated.Start(t.Context(), simulated.Config{Dir: t.TempDir(), Programs: programs, Nodes: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	rest, err := clientcmd.BuildConfigFromFlags("", cluster.Plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	rest.QPS = -1
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{client}
	w.awaitServiceAccount(t)
	return w
}

// awaitServiceAccount waits for the account without which no pod is admitted.
func (w *world) awaitServiceAccount(t *testing.T) {
	t.Helper()
	accounts := w.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	list, err := accounts.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) > 0 {
		return
	}
	source := &cache.ListWatch{WatchFuncWithContext: accounts.Watch}
	if _, err := watchtools.Until(t.Context(), list.ResourceVersion, source, func(watch.Event) (bool, error) {
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) create(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := w.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (w *world) patch(t *testing.T, name, patch string, subresource ...string) {
	t.Helper()
	_, err := w.CoreV1().Pods(metav1.NamespaceDefault).
		Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
	if err != nil {
		t.Fatal(err)
	}
}

// await returns the pod as soon as it is as asked, and nil when it is gone. It sees every state in between, and tells
// about them when the wait is over.
func (w *world) await(t *testing.T, name string, as func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	pods := w.CoreV1().Pods(metav1.NamespaceDefault)
	last, err := pods.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if as(last) {
		return last
	}
	gone := false
	source := &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
			return pods.Watch(ctx, o)
		},
	}
	_, err = watchtools.Until(ctx, last.ResourceVersion, source, func(e watch.Event) (bool, error) {
		if pod, ok := e.Object.(*corev1.Pod); ok {
			last = pod
		}
		gone = e.Type == watch.Deleted
		return gone || as(last), nil
	})
	if err != nil {
		t.Fatalf("wait for pod %s: %v; last %+v", name, err, last.Status)
	}
	if gone {
		return nil
	}
	return last
}

func ready(pod *corev1.Pod) bool { return conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) }

func conditionIs(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
	c := condition(pod, kind)
	return c != nil && c.Status == status
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func statusOf(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, all := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for _, s := range all {
			if s.Name == container {
				return s
			}
		}
	}
	return corev1.ContainerStatus{}
}

// podOf has two containers, a sidecar and an init container.
func podOf(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	grace := int64(2)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			InitContainers: []corev1.Container{
				{Name: "init", Image: "busybox"},
				{Name: "sidecar", Image: "mesh/proxy:1", RestartPolicy: &always},
			},
			Containers: []corev1.Container{
				{Name: "main", Image: "nginx:1", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.5")},
				}},
				{Name: "other", Image: "registry.example:5000/other:1"},
			},
		},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}
