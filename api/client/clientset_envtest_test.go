//go:build envtest

package client_test

import (
	"context"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"

	apply "github.com/kruisekit/kruisekit/api/client/applyconfiguration/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/client/clientset/versioned"
	"github.com/kruisekit/kruisekit/api/client/informers/externalversions"
	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// A CloneSet goes through all of the clients: it is applied, read, listed by an informer, scaled, and deleted.
func TestCloneSetOnAPIServer(t *testing.T) {
	c := cluster.Start(t, cluster.Options{CRDDirs: []string{"../../config/crd/bases"}})
	clients, err := versioned.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := c.Namespace(t)
	sets := clients.AppsV1beta1().CloneSets(namespace)
	app := map[string]string{"app": "web"}
	applied, err := sets.Apply(t.Context(), apply.CloneSet("web", namespace).WithSpec(apply.CloneSetSpec().WithReplicas(2).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(app)).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(app).WithSpec(coreapply.PodSpec().WithContainers(
			coreapply.Container().WithName("app").WithImage("app:1"))))), metav1.ApplyOptions{FieldManager: "test"})
	if err != nil || *applied.Spec.Replicas != 2 {
		t.Fatalf("%+v, %v", applied, err)
	}

	factory := externalversions.NewSharedInformerFactoryWithOptions(clients, 0, externalversions.WithNamespace(namespace))
	informer := factory.Apps().V1beta1().CloneSets()
	lister := informer.Lister()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	scale, err := sets.GetScale(t.Context(), "web", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 2 {
		t.Fatalf("%+v, %v", scale, err)
	}
	scale.Spec.Replicas = 3
	if _, err := sets.UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			set, err := lister.CloneSets(namespace).Get("web")
			return err == nil && *set.Spec.Replicas == 3, err
		}); err != nil {
		t.Errorf("the informer does not show the scale: %v", err)
	}
	set, err := sets.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set.Status.Replicas = 3
	if set, err = sets.UpdateStatus(t.Context(), set, metav1.UpdateOptions{}); err != nil || set.Status.Replicas != 3 {
		t.Errorf("%+v, %v", set, err)
	}
	if err := sets.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
