package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/workload"
)

// world is the operator over objects in memory.
type world struct {
	*testing.T
	*objects.Model

	set *LeaderWorker
	// pods are those of the server, by name. Once all groups serve, so few may be unavailable.
	pods        map[string]*corev1.Pod
	established bool
	deletedAt   time.Time

	// process is the operator.
	process *podbench.Process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Model: objects.NewModel(t, &LeaderWorkerList{}, addToScheme), pods: map[string]*corev1.Pod{}}
	w.set = &LeaderWorker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	w.set.SetGroupVersionKind(kind())
	w.set.Spec.Replicas, w.set.Spec.Size, w.set.Spec.MaxUnavailable = 2, 3, 1
	w.set.Spec.Leader, w.set.Spec.Worker = template("leader:1"), template("worker:1")
	w.process = &podbench.Process{Server: w.Server, Start: func(c client.WithWatch) reconcile.Reconciler {
		return newReconciler(c, w.Server, w.Now)
	}}
	w.Reconciler = w.process
	w.Server.OnChange(w.changed)
	w.Put(w.set)
	w.Eventually(w.unsettled("1"))
	w.established = true
	return w
}

func template(image string) (t corev1.PodTemplateSpec) {
	t.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	return t
}

// changed holds after each write: no container changes in traffic, workers follow their leader, and no more groups than
// allowed are out of traffic.
func (w *world) changed(before, after client.Object) {
	if pod, is := before.(*corev1.Pod); is {
		delete(w.pods, pod.Name)
	}
	pod, is := after.(*corev1.Pod)
	if !is {
		return
	}
	w.pods[pod.Name] = pod
	if pod.DeletionTimestamp != nil {
		w.deletedAt = w.Clock
	}
	group := pod.Labels[groupLabel]
	if leader := w.pods[group]; leader == nil && pod.DeletionTimestamp == nil {
		w.Errorf("%s has no leader", pod.Name)
	} else if w.established && pod.DeletionTimestamp == nil && tag(pod) > tag(leader) {
		w.Errorf("%s is updated before its leader", pod.Name)
	}
	serving, changing, whole := map[string]int32{}, map[string]bool{}, int32(0)
	for _, pod := range w.pods {
		group := pod.Labels[groupLabel]
		if s := pod.Status.ContainerStatuses; len(s) > 0 && s[0].Image != pod.Spec.Containers[0].Image {
			changing[group] = true
		}
		if serves(pod) {
			serving[group]++
		}
	}
	for group, n := range serving {
		if n > 0 && changing[group] {
			w.Errorf("%s changes while %d of its pods are in traffic", group, n)
		}
		if n == w.set.Spec.Size {
			whole++
		}
	}
	if w.established && whole < w.set.Spec.Replicas-w.set.Spec.MaxUnavailable {
		w.Errorf("%d groups are in traffic", whole)
	}
}

func tag(pod *corev1.Pod) string {
	_, tag, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
	return tag
}

// serves reports whether a pod is in traffic, or about to be.
func serves(pod *corev1.Pod) bool {
	is := map[corev1.PodConditionType]bool{}
	for _, c := range pod.Status.Conditions {
		is[c.Type] = c.Status == corev1.ConditionTrue
	}
	return pod.DeletionTimestamp == nil && is[corev1.PodReady] && is[kruise.InPlaceUpdateReady]
}

// unsettled returns what is not yet as the LeaderWorker asks for.
func (w *world) unsettled(version string) func() error {
	return func() error {
		w.Look(w.set)
		pods := w.Pods()
		if want := int(w.set.Spec.Replicas * w.set.Spec.Size); len(pods) != want {
			return fmt.Errorf("%d pods, want %d", len(pods), want)
		}
		for _, pod := range pods {
			revision := pod.Labels[kruise.PodRevisionLabelKey]
			if !serves(pod) || tag(pod) != version || revision != w.set.Status.CurrentRevision {
				return fmt.Errorf("pod %s has %s of %s", pod.Name, tag(pod), revision)
			}
		}
		return nil
	}
}

// TestSetup adds the operator to a manager that is not started.
func TestSetup(t *testing.T) {
	scheme := runtime.NewScheme()
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme: scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err == nil {
		err = errors.Join(corev1.AddToScheme(scheme), add(mgr))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDefinition reads leaderworker.yaml, which has all fields of the type.
func TestDefinition(t *testing.T) {
	data, err := os.ReadFile("leaderworker.yaml")
	var crd apiextensionsv1.CustomResourceDefinition
	if err := errors.Join(err, yaml.UnmarshalStrict(data, &crd)); err != nil {
		t.Fatal(err)
	}
	if got := crd.Spec; got.Group != kind().Group || got.Names.Kind != kind().Kind ||
		crd.Name != got.Names.Plural+"."+got.Group || got.Versions[0].Name != kind().Version {
		t.Errorf("%s defines %s of %s/%s", crd.Name, got.Names.Kind, got.Group, got.Versions[0].Name)
	}
	w := newWorld(t)
	w.set.Status.Message, w.set.Status.Restarts = "waits", workload.Restarts{"web-0": {Count: 1}}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.set)
	if err != nil {
		t.Fatal(err)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	for _, part := range []string{"spec", "status"} {
		for name := range fields[part].(map[string]any) {
			if _, known := schema[part].Properties[name]; !known {
				t.Errorf("%s.%s is not defined", part, name)
			}
		}
	}
}
