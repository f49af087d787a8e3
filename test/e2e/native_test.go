//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/image"
	adapter "github.com/kruisekit/kruisekit/workload/native"
)

// natives are the sets of one namespace, with the reconciler in this process.
type natives struct {
	*cluster.Cluster

	namespace string
	images    [3]string
}

// testNative rolls out a DaemonSet in place.
func testNative(t *testing.T, c *cluster.Cluster) {
	n := newNatives(t, c)
	n.start(t)
	set := &appsv1.DaemonSet{ObjectMeta: n.meta("agent"), Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}, Template: n.template("agent"),
		UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
	}}
	if err := n.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	one := n.pods(t, set, n.images[0], 0)
	n.patch(t, set, imageOf(n.images[1]))
	samePods(t, one, n.pods(t, set, n.images[1], 1))
	eventually(t, func(ctx context.Context) error {
		err := n.Client.Get(ctx, client.ObjectKeyFromObject(set), set)
		if err == nil && set.Status.UpdatedNumberScheduled != nodes {
			err = fmt.Errorf("status %+v", set.Status)
		}
		return err
	})
}

func newNatives(t *testing.T, c *cluster.Cluster) *natives {
	t.Helper()
	n := &natives{Cluster: c, namespace: c.Namespace(t)}
	for k := range n.images {
		n.images[k] = c.Push(t, image.Spec{Name: fmt.Sprintf("native/web:%d", k+1)}).Name
	}
	return n
}

func (n *natives) start(t *testing.T) {
	t.Helper()
	config := rest.CopyConfig(n.Config)
	config.QPS = -1
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: newScheme(t), Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{n.namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := native.New(mgr.GetClient(), native.Options{})
	if err == nil {
		err = r.SetupWithManager(t.Context(), mgr, controller.Options{SkipNameValidation: ptr.To(true)})
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := mgr.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
}

func (n *natives) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: n.namespace, Name: name, Annotations: map[string]string{adapter.RolloutKey: `{"maxUnavailable":1}`},
	}
}

func (n *natives) template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
			Containers:                    []corev1.Container{{Name: "web", Image: n.images[0]}},
		},
	}
}

// pods are those of a set by name, once each is ready at an image, with as many restarts.
func (n *natives) pods(t *testing.T, set client.Object, image string, restarts int32) map[string]corev1.Pod {
	t.Helper()
	all := map[string]corev1.Pod{}
	eventually(t, func(ctx context.Context) error {
		var list corev1.PodList
		err := n.Client.List(ctx, &list, client.InNamespace(n.namespace), client.MatchingLabels{"app": set.GetName()})
		if err != nil {
			return err
		}
		if err := n.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		var progress native.Progress
		status := set.GetAnnotations()[native.StatusKey]
		if err := json.Unmarshal([]byte(status), &progress); err != nil || progress.State != native.StateComplete ||
			len(list.Items) != nodes {
			return fmt.Errorf("%d pods, %s", len(list.Items), status)
		}
		for _, pod := range list.Items {
			s := pod.Status.ContainerStatuses
			if pod.Spec.Containers[0].Image != image || len(s) != 1 || !s[0].Ready || s[0].RestartCount != restarts {
				return fmt.Errorf("pod %s: %s, %+v", pod.Name, pod.Spec.Containers[0].Image, s)
			}
			all[pod.Name] = pod
		}
		return nil
	})
	return all
}

func (n *natives) patch(t *testing.T, set client.Object, patch string) {
	t.Helper()
	if err := n.Client.Patch(t.Context(), set, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// samePods expects that pods are the ones from before: UID, node and address.
func samePods(t *testing.T, before, after map[string]corev1.Pod) {
	t.Helper()
	for name, pod := range after {
		old := before[name]
		if old.UID != pod.UID || old.Spec.NodeName != pod.Spec.NodeName || old.Status.PodIP != pod.Status.PodIP {
			t.Errorf("pod %s is another one: %s on %s with %s, want %s on %s with %s", name, pod.UID, pod.Spec.NodeName,
				pod.Status.PodIP, old.UID, old.Spec.NodeName, old.Status.PodIP)
		}
	}
}

func imageOf(name string) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, name)
}
