package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

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
)

// world is the operator over objects in memory.
type world struct {
	*testing.T
	*objects.Model

	db *Database
	// pods and claims are those of the server, by name. Once all members serve, a majority does.
	pods        map[string]*corev1.Pod
	claims      map[string]*corev1.PersistentVolumeClaim
	established bool
	// elected is the member that is updated last; empty for none.
	elected string

	// process is the operator.
	process *podbench.Process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		T: t, Model: objects.NewModel(t, &DatabaseList{}, addToScheme),
		pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{},
	}
	w.db = &Database{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	w.db.SetGroupVersionKind(kind())
	w.db.Spec.Members, w.db.Spec.Template = 5, template("db:1")
	w.process = &podbench.Process{Server: w.Server, Start: func(c client.WithWatch) reconcile.Reconciler {
		return newReconciler(c, w.Server, w.Now)
	}}
	w.Reconciler = w.process
	w.Server.OnChange(w.changed)
	w.Put(w.db)
	w.Eventually(w.unsettled("1"))
	w.established = true
	return w
}

// elect has the database elect a member.
func (w *world) elect(member string) {
	w.elected = member
	w.Server.ChangePods(func(pod *corev1.Pod) *corev1.Pod {
		after := pod.DeepCopy()
		delete(after.Labels, electedLabel)
		if pod.Labels[memberLabel] == member {
			after.Labels[electedLabel] = "true"
		}
		return after
	})
}

func template(image string) (t corev1.PodTemplateSpec) {
	t.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	return t
}

// changed holds after each write: a pod has its claim, a majority serves, and the elected member is the last.
func (w *world) changed(before, after client.Object) {
	switch gone := before.(type) {
	case *corev1.Pod:
		delete(w.pods, gone.Name)
	case *corev1.PersistentVolumeClaim:
		delete(w.claims, gone.Name)
	}
	switch o := after.(type) {
	case *corev1.PersistentVolumeClaim:
		w.claims[o.Name] = o
	case *corev1.Pod:
		w.pods[o.Name] = o
		if volumes := o.Spec.Volumes; len(volumes) != 1 || w.claims[volumes[0].PersistentVolumeClaim.ClaimName] == nil {
			w.Errorf("%s has no claim", o.Name)
		}
	}
	serving := int32(0)
	for _, pod := range w.pods {
		if serves(pod) {
			serving++
		}
	}
	if w.established && serving < w.db.Spec.Members/2+1 {
		w.Errorf("%d members serve", serving)
	}
	elected := w.pods["db-"+w.elected]
	if elected == nil || tag(elected) == "1" && serves(elected) {
		return
	}
	for _, pod := range w.pods {
		if pod != elected && (tag(pod) == "1" || !serves(pod)) {
			w.Errorf("%s is not updated, and the elected %s is", pod.Name, elected.Name)
		}
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

// unsettled returns what is not yet as the database asks for.
func (w *world) unsettled(version string) func() error {
	return func() error {
		w.Look(w.db)
		pods := w.Pods()
		if want := w.db.Spec.Members; len(pods) != int(want) || w.db.Status.Ready != want {
			return fmt.Errorf("%d pods, %d are ready, want %d", len(pods), w.db.Status.Ready, want)
		}
		for _, pod := range pods {
			revision := pod.Labels[kruise.PodRevisionLabelKey]
			if !serves(pod) || tag(pod) != version || revision != w.db.Status.CurrentRevision {
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

// TestDefinition reads database.yaml, which has all fields of the type.
func TestDefinition(t *testing.T) {
	data, err := os.ReadFile("database.yaml")
	var crd apiextensionsv1.CustomResourceDefinition
	if err := errors.Join(err, yaml.UnmarshalStrict(data, &crd)); err != nil {
		t.Fatal(err)
	}
	if got := crd.Spec; got.Group != kind().Group || got.Names.Kind != kind().Kind ||
		crd.Name != got.Names.Plural+"."+got.Group || got.Versions[0].Name != kind().Version {
		t.Errorf("%s defines %s of %s/%s", crd.Name, got.Names.Kind, got.Group, got.Versions[0].Name)
	}
	w := newWorld(t)
	w.db.Status.Message = "waits"
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.db)
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
