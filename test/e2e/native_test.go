//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	recorder "github.com/kruisekit/kruisekit/test/requests"
	adapter "github.com/kruisekit/kruisekit/workload/native"
)

// natives are the sets of one namespace, with the reconciler in this process.
type natives struct {
	*cluster.Cluster

	namespace string
	requests  *recorder.Recorder
	images    [3]string
}

// testNative rolls out a StatefulSet with claims and a DaemonSet.
func testNative(t *testing.T, c *cluster.Cluster) {
	n := newNatives(t, c)
	n.requests = &recorder.Recorder{Namespace: n.namespace}
	n.start(t)
	t.Run("StatefulSet", func(t *testing.T) { t.Parallel(); n.testStatefulSet(t) })
	t.Run("DaemonSet", func(t *testing.T) { t.Parallel(); n.testDaemonSet(t) })
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
	config.Wrap(n.requests.Wrap)
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

func (n *natives) testStatefulSet(t *testing.T) {
	class := "native-" + n.namespace
	for k := range nodes {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", class, k)}}
		volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
		volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		volume.Spec.StorageClassName = class
		volume.Spec.HostPath = &corev1.HostPathVolumeSource{
			Path: "/tmp/" + volume.Name, Type: ptr.To(corev1.HostPathDirectoryOrCreate),
		}
		if err := n.Client.Create(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Client.Delete(context.WithoutCancel(t.Context()), volume) })
	}
	set := &appsv1.StatefulSet{ObjectMeta: n.meta("db"), Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To(int32(nodes)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		Template: n.template("db"), PodManagementPolicy: appsv1.ParallelPodManagement,
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
	}}
	set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes, claim.Spec.StorageClassName = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, &class
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	if err := n.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	one := n.pods(t, set, n.images[0], 0)
	n.requests.Take()
	began := time.Now()
	n.patch(t, set, imageOf(n.images[1]))
	two := n.pods(t, set, n.images[1], 1)
	t.Logf("%d pods in place in %v, requests %v", nodes, time.Since(began).Round(100*time.Millisecond), n.writes())
	samePods(t, one, two)

	// In the middle of the next rollout a pod is drained: it comes back at the newest revision, with its volume.
	n.patch(t, set, imageOf(n.images[2]))
	eventually(t, func(ctx context.Context) error {
		var pod corev1.Pod
		err := n.Client.Get(ctx, types.NamespacedName{Namespace: n.namespace, Name: "db-2"}, &pod)
		if err == nil && pod.Spec.Containers[0].Image != n.images[2] {
			err = fmt.Errorf("db-2 has %s", pod.Spec.Containers[0].Image)
		}
		return err
	})
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "db-0"}}
	if err := n.Client.SubResource("eviction").Create(t.Context(), &corev1.Pod{ObjectMeta: eviction.ObjectMeta},
		eviction); err != nil {
		t.Fatal(err)
	}
	three := n.settles(t, set, n.images[2], nil)
	n.writes()
	began = time.Now()
	for name := range three {
		if old, is := two[name], three[name]; (old.UID == is.UID) != (name != "db-0") || volumeOf(&old) != volumeOf(&is) {
			t.Errorf("pod %s: %s with %s, was %s with %s", name, is.UID, volumeOf(&is), old.UID, volumeOf(&old))
		}
	}

	// A change of the environment needs other pods, from the highest ordinal on.
	n.patch(t, set, `{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"b"}]}]}}}}`)
	four := n.settles(t, set, n.images[2], func(pod *corev1.Pod) bool { return len(pod.Spec.Containers[0].Env) == 1 })
	t.Logf("%d pods evicted in %v, requests %v", nodes, time.Since(began).Round(100*time.Millisecond), n.writes())
	for k := range nodes - 1 {
		low, high := four[fmt.Sprintf("db-%d", k)], four[fmt.Sprintf("db-%d", k+1)]
		if low.CreationTimestamp.Before(&high.CreationTimestamp) || low.UID == three[low.Name].UID {
			t.Errorf("%s of %v, %s of %v", low.Name, low.CreationTimestamp, high.Name, high.CreationTimestamp)
		}
	}
	n.testHandOver(t, set, four)
}

// testHandOver changes the strategy: nothing restarts, and the built-in controller goes on with the next template.
func (n *natives) testHandOver(t *testing.T, set *appsv1.StatefulSet, before map[string]corev1.Pod) {
	t.Helper()
	n.patch(t, set, `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}}}`)
	eventually(t, func(ctx context.Context) error {
		err := n.Client.Get(ctx, client.ObjectKeyFromObject(set), set)
		if err == nil && set.Status.CurrentRevision != set.Status.UpdateRevision {
			err = fmt.Errorf("status %+v", set.Status)
		}
		return err
	})
	samePods(t, before, n.settles(t, set, n.images[2], nil))
	began := time.Now()
	n.patch(t, set, imageOf(n.images[0]))
	for name, pod := range n.settles(t, set, n.images[0], nil) {
		if pod.UID == before[name].UID {
			t.Errorf("pod %s is the one from before", name)
		}
	}
	t.Logf("%d pods by the built-in controller in %v", nodes, time.Since(began).Round(100*time.Millisecond))
}

// writes counts the requests since the last call that write pods and sets, by what they write.
func (n *natives) writes() map[string]int {
	all := map[string]int{}
	for _, request := range n.requests.Take() {
		fields := strings.Fields(request)
		if len(fields) < 2 || fields[0] == "GET" {
			continue
		}
		parts := strings.Split(fields[1], "/")
		all[fields[0]+" "+parts[0]+strings.Join(parts[min(2, len(parts)):], "/")]++
	}
	return all
}

func volumeOf(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// settles returns the pods of a set once the rollout is complete and something is true of all of them.
func (n *natives) settles(
	t *testing.T, set *appsv1.StatefulSet, image string, is func(*corev1.Pod) bool,
) map[string]corev1.Pod {
	t.Helper()
	all := map[string]corev1.Pod{}
	eventually(t, func(ctx context.Context) error {
		var list corev1.PodList
		err := n.Client.List(ctx, &list, client.InNamespace(n.namespace), client.MatchingLabels{"app": set.Name})
		if err != nil {
			return err
		}
		if err := n.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if set.Status.UpdatedReplicas != nodes || set.Status.ReadyReplicas != nodes || len(list.Items) != nodes ||
			set.Status.ObservedGeneration < set.Generation {
			return fmt.Errorf("%+v", set.Status)
		}
		for k, pod := range list.Items {
			if pod.Spec.Containers[0].Image != image || pod.Status.PodIP == "" || is != nil && !is(&list.Items[k]) {
				return fmt.Errorf("pod %s has %s", pod.Name, pod.Spec.Containers[0].Image)
			}
			all[pod.Name] = pod
		}
		return nil
	})
	return all
}

func (n *natives) testDaemonSet(t *testing.T) {
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
