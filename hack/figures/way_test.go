package main

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/predownload"
	"github.com/kruisekit/kruisekit/test/objects"
)

// The production reconciler of CloneSets creates one pod.
func TestCreate(t *testing.T) {
	created(t)
}

// The production reconciler of CloneSets updates one pod in place. `make figures` compares the coverage with that of
// TestCreate.
func TestUpdate(t *testing.T) {
	m, set := created(t)
	before := m.Pods()[0].UID
	objects.Change(m, set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "web:2" })
	settle(m, set)
	pod := m.Pods()[0]
	if pod.UID != before || pod.Spec.Containers[0].Image != "web:2" {
		t.Errorf("pod %s with image %s is not updated in place", pod.Name, pod.Spec.Containers[0].Image)
	}
}

// created returns a CloneSet with one available pod.
func created(t *testing.T) (*objects.Model, *v1beta1.CloneSet) {
	t.Helper()
	m := newModel(t)
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
	}
	if err := m.Server.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	settle(m, set)
	return m, set
}

// settle runs until the pod of a set is updated and available, and nothing is left to do.
func settle(m *objects.Model, set *v1beta1.CloneSet) {
	m.Eventually(func() error {
		m.Look(set)
		if s := set.Status; s.ObservedGeneration != set.Generation || s.UpdatedAvailableReplicas != 1 {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	m.Still()
}

// newModel returns a model with the production reconciler of CloneSets.
func newModel(t *testing.T) *objects.Model {
	t.Helper()
	m := objects.NewModel(t, &v1beta1.CloneSetList{}, v1beta1.AddToScheme)
	for _, o := range []client.Object{
		&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{},
		predownload.Metadata(&v1beta1.ImagePullJob{}),
	} {
		if err := owned.Index(t.Context(), m.Server, o); err != nil {
			t.Fatal(err)
		}
	}
	r, err := cloneset.New(m.Server, cloneset.Options{Now: m.Now, Recorder: m.Server, Live: m.Server})
	if err != nil {
		t.Fatal(err)
	}
	m.Reconciler = r
	return m
}
