package main

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/operatortest"
)

// world is the operator over objects in memory.
type world struct {
	*testing.T
	*objects.Model

	service *Inference
	// pods are those of the server, by name.
	pods map[string]*corev1.Pod
	// down are how many pods of each role may be out of traffic; nil for no bound.
	down map[string]int

	// process is the operator.
	process *podbench.Process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Model: objects.NewModel(t, &InferenceList{}, addToScheme), pods: map[string]*corev1.Pod{}}
	w.service = &Inference{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "chat"}}
	w.service.SetGroupVersionKind(kind())
	w.service.Spec.Roles = []Role{
		{Name: "router", Replicas: 2, MaxUnavailable: 1, Template: operatortest.Template("router:1")},
		{Name: "prefill", Replicas: 2, MaxUnavailable: 1, Template: operatortest.Template("prefill:1")},
		{Name: "decode", Replicas: 3, MaxUnavailable: 2, Template: operatortest.Template("decode:1")},
	}
	w.process = &podbench.Process{Server: w.Server, Start: func(c client.WithWatch) reconcile.Reconciler {
		return newReconciler(c, w.Server, w.Now)
	}}
	w.Reconciler = w.process
	w.Server.OnChange(w.changed)
	w.Put(w.service)
	w.Eventually(w.unsettled)
	return w
}

// changed holds after each write: no more pods of a role than allowed are out of traffic.
func (w *world) changed(before, after client.Object) {
	if pod, is := before.(*corev1.Pod); is {
		delete(w.pods, pod.Name)
	}
	if pod, is := after.(*corev1.Pod); is {
		w.pods[pod.Name] = pod
	}
	if w.down == nil {
		return
	}
	up := map[string]int{}
	for _, pod := range w.pods {
		if operatortest.Serves(pod) {
			up[pod.Labels[roleLabel]]++
		}
	}
	for _, r := range w.service.Spec.Roles {
		if down := int(r.Replicas) - up[r.Name]; down > w.down[r.Name] {
			w.Errorf("%d pods of %s are out of traffic, want %d at most", down, r.Name, w.down[r.Name])
		}
	}
}

// unsettled returns what is not yet as the service asks for.
func (w *world) unsettled() error {
	w.Look(w.service)
	missing := -int32(len(w.pods))
	for _, r := range w.service.Spec.Roles {
		missing += r.Replicas
		for i := range r.Replicas {
			if err := w.unsettledPod(fmt.Sprintf("chat-%s-%d", r.Name, i), &r.Template.Spec.Containers[0]); err != nil {
				return err
			}
		}
	}
	if ready := w.service.Status.Ready; missing != 0 || ready != int32(len(w.pods)) {
		return fmt.Errorf("%d pods are missing, of the others %d are ready", missing, ready)
	}
	return nil
}

func (w *world) unsettledPod(name string, want *corev1.Container) error {
	pod := w.pods[name]
	switch revision := w.service.Status.CurrentRevision; {
	case pod == nil || !operatortest.Serves(pod):
		return fmt.Errorf("%s does not serve", name)
	case pod.Spec.Containers[0].Image != want.Image || len(pod.Spec.Containers[0].Env) != len(want.Env):
		return fmt.Errorf("%s has %s", name, pod.Spec.Containers[0].Image)
	case pod.Labels[kruise.PodRevisionLabelKey] != revision:
		return fmt.Errorf("%s has the revision %s, and not %s", name, pod.Labels[kruise.PodRevisionLabelKey], revision)
	}
	return nil
}

// TestSetup adds the operator to a manager that is not started.
func TestSetup(t *testing.T) { operatortest.Setup(t, add) }

// TestDefinition reads inference.yaml, which has all fields of the type.
func TestDefinition(t *testing.T) {
	w := newWorld(t)
	w.service.Status.Message = "waits"
	operatortest.Definition(t, "inference.yaml", kind(), w.service)
}
