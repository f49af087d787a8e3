//go:build e2e

package lifecycle

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	managerDigest = flag.String("manager", "", "digest of the image of the manager in the registry of the nodes")
	daemonDigest  = flag.String("daemon", "", "digest of the image of the daemon")
)

const (
	namespace = "install-test"
	system    = "kruise-system"
	patience  = 3 * time.Minute
)

var (
	cloneSets   = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "clonesets"}
	sidecarSets = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "sidecarsets"}
)

type world struct {
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	helm    *action.Configuration
	chart   *chart.Chart
}

func TestLifecycle(t *testing.T) {
	w := newWorld(t)
	w.clean(t)
	t.Cleanup(func() { w.clean(t) })
	begin := time.Now()
	done := func(what string) {
		t.Logf("%s after %s", what, time.Since(begin).Round(time.Second/10))
		begin = time.Now()
	}

	install := action.NewInstall(w.helm)
	install.ReleaseName, install.Namespace, install.Wait, install.Timeout = "kruise", "default", true, patience
	if _, err := install.Run(w.chart, w.values(nil)); err != nil {
		t.Fatal(err)
	}
	done("installed")
	w.workload(t)
	pods := w.settled(t, "install/web:1")
	done("a CloneSet with sidecars runs")

	// A rollout begins, and the manager changes in its midst.
	w.image(t, "install/web:2")
	w.upgrade(t, map[string]any{"podAnnotations": map[string]any{"restarted": "yes"}}, false)
	w.same(t, pods, w.settled(t, "install/web:2"))
	done("upgraded under a rollout")

	w.image(t, "install/web:1")
	rollback := action.NewRollback(w.helm)
	rollback.Version, rollback.Wait, rollback.Timeout = 1, true, patience
	if err := rollback.Run("kruise"); err != nil {
		t.Fatal(err)
	}
	w.same(t, pods, w.settled(t, "install/web:1"))
	done("rolled back under a rollout")

	w.upgrade(t, nil, true)
	uninstall := action.NewUninstall(w.helm)
	uninstall.Wait, uninstall.Timeout = true, patience
	if _, err := uninstall.Run("kruise"); err != nil {
		t.Fatal(err)
	}
	done("uninstalled")
	w.nothingLeft(t)
	w.same(t, pods, w.pods(t))
	w.unblocked(t)
	done("checked what is left")

	again := action.NewInstall(w.helm)
	again.ReleaseName, again.Namespace, again.Wait, again.Timeout = "kruise", "default", true, patience
	if _, err := again.Run(w.chart, w.values(nil)); err != nil {
		t.Fatalf("install again over the kept CRDs: %v", err)
	}
	w.image(t, "install/web:2")
	w.same(t, pods, w.settled(t, "install/web:2"))
	done("installed again, and continued")
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if *managerDigest == "" || *daemonDigest == "" {
		t.Fatal("want digests: run hack/install-test")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{helm: &action.Configuration{}}
	if w.kube, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if w.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if err := w.helm.Init(cli.New().RESTClientGetter(), "default", "secret", func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	if w.chart, err = loader.LoadDir("../../../charts/kruisekit"); err != nil {
		t.Fatal(err)
	}
	return w
}

// values are those of the images, and more of the manager.
func (w *world) values(manager map[string]any) map[string]any {
	merged := map[string]any{"image": map[string]any{"repository": "install/kruise-manager", "digest": *managerDigest}}
	maps.Copy(merged, manager)
	return map[string]any{
		"manager": merged,
		"daemon":  map[string]any{"image": map[string]any{"repository": "install/kruise-daemon", "digest": *daemonDigest}},
	}
}

func (w *world) upgrade(t *testing.T, manager map[string]any, storageVersionOnly bool) {
	t.Helper()
	upgrade := action.NewUpgrade(w.helm)
	upgrade.Namespace, upgrade.Wait, upgrade.Timeout = "default", true, patience
	values := w.values(manager)
	values["crds"] = map[string]any{"storageVersionOnly": storageVersionOnly}
	if _, err := upgrade.Run("kruise", w.chart, values); err != nil {
		t.Fatal(err)
	}
}

// workload creates a SidecarSet, and a CloneSet whose pods it selects.
func (w *world) workload(t *testing.T) {
	t.Helper()
	if _, err := w.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]any{"app": "web"}
	container := func(name, image string) []any { return []any{map[string]any{"name": name, "image": image}} }
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": map[string]any{"name": namespace},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels}, "containers": container("side", "install/side:1"),
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
		},
	}}
	if _, err := w.dynamic.Resource(sidecarSets).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "the entry of the SidecarSet", func(ctx context.Context) error {
		c, err := w.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx,
			"kruise-pods-webhook-configuration", metav1.GetOptions{})
		if err == nil && len(c.Webhooks) == 0 {
			err = fmt.Errorf("no entry")
		}
		return err
	})
	clones := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
		"metadata": map[string]any{"namespace": namespace, "name": "web"},
		"spec": map[string]any{
			"replicas": int64(6), "selector": map[string]any{"matchLabels": labels},
			"updateStrategy": map[string]any{"rollingUpdate": map[string]any{
				"podUpdatePolicy": "InPlaceOnly", "maxUnavailable": int64(1),
			}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": container("web", "install/web:1"), "terminationGracePeriodSeconds": int64(1)},
			},
		},
	}}
	if _, err := w.dynamic.Resource(cloneSets).Namespace(namespace).Create(t.Context(), clones, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) image(t *testing.T, image string) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image)
	if _, err := w.dynamic.Resource(cloneSets).Namespace(namespace).Patch(t.Context(), "web", types.JSONPatchType,
		[]byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// settled waits until all pods run an image and are ready, and returns their UIDs.
func (w *world) settled(t *testing.T, image string) []string {
	t.Helper()
	w.eventually(t, "pods with "+image, func(ctx context.Context) error {
		pods, err := w.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, pod := range pods.Items {
			runs := slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
				return s.Name == "web" && s.Ready && strings.HasSuffix(s.Image, image)
			})
			if runs && len(pod.Spec.Containers) == 2 && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		if ready != 6 || len(pods.Items) != 6 {
			return fmt.Errorf("%d of %d pods are ready with it", ready, len(pods.Items))
		}
		return nil
	})
	return w.pods(t)
}

func (w *world) pods(t *testing.T) []string {
	t.Helper()
	pods, err := w.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			all = append(all, pod.Name+" "+string(pod.UID))
		}
	}
	slices.Sort(all)
	return all
}

func (*world) same(t *testing.T, before, after []string) {
	t.Helper()
	if !slices.Equal(before, after) {
		t.Errorf("pods were recreated:\n%q\n%q", before, after)
	}
}

// nothingLeft: no object of ours is in the cluster, but the CRDs and what users have created.
func (w *world) nothingLeft(t *testing.T) {
	t.Helper()
	for _, resource := range []schema.GroupVersionResource{
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Version: "v1", Resource: "namespaces"},
	} {
		w.eventually(t, resource.Resource+" to go", func(ctx context.Context) error {
			list, err := w.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, o := range list.Items {
				if strings.Contains(o.GetName(), "kruise") {
					return fmt.Errorf("%s is left", o.GetName())
				}
			}
			return nil
		})
	}
	definitions, err := w.dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=kruisekit"})
	if err != nil || len(definitions.Items) != 18 {
		t.Errorf("%d CRDs are kept, %v", len(definitions.Items), err)
	}
}

// unblocked: pods and objects of the kinds are written as if there were no webhook.
func (w *world) unblocked(t *testing.T) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "alone", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "install/web:1"}}},
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := w.kube.CoreV1().Pods(namespace).Create(t.Context(), pod, dry); err != nil {
		t.Errorf("a pod is refused: %v", err)
	}
	patch := []byte(`{"metadata":{"annotations":{"edited":"while uninstalled"}}}`)
	if _, err := w.dynamic.Resource(cloneSets).Namespace(namespace).Patch(t.Context(), "web", types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Errorf("a CloneSet cannot be written: %v", err)
	}
}

// clean removes what a former run, or this one, has left.
func (w *world) clean(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	uninstall := action.NewUninstall(w.helm)
	uninstall.IgnoreNotFound, uninstall.Wait, uninstall.Timeout = true, true, patience
	if _, err := uninstall.Run("kruise"); err != nil {
		t.Logf("uninstall: %v", err)
	}
	crds := w.dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	if err := w.kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		t.Error(err)
	}
	if err := crds.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/part-of=kruisekit",
	}); err != nil {
		t.Error(err)
	}
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		_, gone := w.kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		_, gone2 := w.kube.CoreV1().Namespaces().Get(ctx, system, metav1.GetOptions{})
		left, err := crds.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=kruisekit"})
		if apierrors.IsNotFound(gone) && apierrors.IsNotFound(gone2) && err == nil && len(left.Items) == 0 {
			return
		}
	}
	t.Error("something does not go")
}

func (*world) eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("wait for %s: %v", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
