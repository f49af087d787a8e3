//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

const (
	nodes   = 3
	timeout = 5 * time.Minute
	poll    = 100 * time.Millisecond
)

func testPodsRunOnEveryNode(t *testing.T, c *cluster.Cluster) {
	web := c.Push(t, image.Spec{Name: "smoke/web:1"})
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(t), Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(nodes)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To(int64(0)),
					Containers:                    []corev1.Container{{Name: "web", Image: web.Name}},
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
						LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
				},
			},
		},
	}
	if err := c.Client.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.Client.List(ctx, &pods, client.InNamespace(deployment.Namespace)); err != nil {
			return err
		}
		on := map[string]bool{}
		for _, pod := range pods.Items {
			if ready(&pod) {
				on[pod.Spec.NodeName] = true
			}
		}
		if len(on) < nodes {
			return fmt.Errorf("ready pods on %v, want %d nodes", on, nodes)
		}
		return nil
	})
}

// A test on real nodes leaves no namespace behind, for the cluster may be one that a developer keeps.
func testNamespaceGoesWithItsTest(t *testing.T, c *cluster.Cluster) {
	var namespace string
	t.Run("a test", func(t *testing.T) {
		namespace = c.Namespace(t)
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "config"}}
		if err := c.Client.Create(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	})
	eventually(t, func(ctx context.Context) error {
		switch err := c.Client.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("the namespace is still there")
	})
}

// In-place updates stand on this: a kubelet restarts the one container whose image changes, and leaves the others
// alone.
func testPatchedImageRestartsOneContainer(t *testing.T, c *cluster.Cluster) {
	one, two := c.Push(t, image.Spec{Name: "smoke/main:1"}), c.Push(t, image.Spec{Name: "smoke/main:2"})
	beside := c.Push(t, image.Spec{Name: "smoke/beside:1"})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(t), Name: "patched"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(1)),
			Containers: []corev1.Container{
				{Name: "main", Image: one.Name}, {Name: "beside", Image: beside.Name},
			},
		},
	}
	if err := c.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { return settled(ctx, c.Client, pod, one) })
	before := statuses(pod)

	patch := client.MergeFrom(pod.DeepCopy())
	pod.Spec.Containers[0].Image = two.Name
	if err := c.Client.Patch(t.Context(), pod, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { return settled(ctx, c.Client, pod, two) })
	after := statuses(pod)

	if got, want := after["main"].RestartCount, before["main"].RestartCount+1; got != want {
		t.Errorf("restarts of the patched container: %d, want %d", got, want)
	}
	if after["main"].ContainerID == before["main"].ContainerID || after["main"].ImageID == before["main"].ImageID {
		t.Errorf("the patched container is still %s of %s", after["main"].ContainerID, after["main"].ImageID)
	}
	if got, want := after["beside"], before["beside"]; got.ContainerID != want.ContainerID ||
		got.RestartCount != want.RestartCount {
		t.Errorf("the other container is %s after %d restarts, want %s after %d",
			got.ContainerID, got.RestartCount, want.ContainerID, want.RestartCount)
	}
}

// settled reads the pod and returns nil if its main container runs the image and the pod is ready.
func settled(ctx context.Context, c client.Client, pod *corev1.Pod, want image.Image) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	main := statuses(pod)["main"]
	// A runtime names an image by the digest of its manifest or by that of its configuration.
	if !runs(main, want) {
		return fmt.Errorf("image is %q, want %s or %s", main.ImageID, want.Digest, want.ID)
	}
	if !ready(pod) {
		return fmt.Errorf("not ready: %+v", pod.Status.Conditions)
	}
	return nil
}

func runs(status corev1.ContainerStatus, want image.Image) bool {
	return strings.HasSuffix(status.ImageID, want.Digest) || strings.HasSuffix(status.ImageID, want.ID)
}

func statuses(pod *corev1.Pod) map[string]corev1.ContainerStatus {
	all := map[string]corev1.ContainerStatus{}
	for _, status := range pod.Status.ContainerStatuses {
		all[status.Name] = status
	}
	return all
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// eventually fails the test when check has not succeeded in time, with the last reason why.
func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), poll, timeout, true, func(ctx context.Context) (bool, error) {
		now := check(ctx)
		if now == nil || ctx.Err() == nil {
			last = now // that the time is over explains nothing
		}
		return now == nil, nil
	})
	if err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}
