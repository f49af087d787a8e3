// Package operatortest has what the tests of the example operators share.
package operatortest

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Template is one of pods with the container main.
func Template(image string) (t corev1.PodTemplateSpec) {
	t.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	return t
}

// Tag returns that of the image a pod is to run.
func Tag(pod *corev1.Pod) string {
	_, tag, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
	return tag
}

// Serves reports whether a pod is in traffic, or about to be.
func Serves(pod *corev1.Pod) bool {
	is := map[corev1.PodConditionType]bool{}
	for _, c := range pod.Status.Conditions {
		is[c.Type] = c.Status == corev1.ConditionTrue
	}
	return pod.DeletionTimestamp == nil && is[corev1.PodReady] && is[kruise.InPlaceUpdateReady]
}

// UIDs returns the UIDs of pods by their names.
func UIDs(pods map[string]*corev1.Pod) map[string]types.UID {
	uids := map[string]types.UID{}
	for name, pod := range pods {
		uids[name] = pod.UID
	}
	return uids
}

// Setup adds an operator to a manager that is not started.
func Setup(t *testing.T, add func(ctrl.Manager) error) {
	t.Helper()
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

// Definition reads a file with a CRD, which must define the kind of an object, and all fields that the object has.
func Definition(t *testing.T, file string, kind schema.GroupVersionKind, object runtime.Object) {
	t.Helper()
	data, err := os.ReadFile(file)
	var crd apiextensionsv1.CustomResourceDefinition
	if err := errors.Join(err, yaml.UnmarshalStrict(data, &crd)); err != nil {
		t.Fatal(err)
	}
	if got := crd.Spec; got.Group != kind.Group || got.Names.Kind != kind.Kind ||
		crd.Name != got.Names.Plural+"."+got.Group || got.Versions[0].Name != kind.Version {
		t.Errorf("%s defines %s of %s/%s", crd.Name, got.Names.Kind, got.Group, got.Versions[0].Name)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	defined := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	for _, part := range []string{"spec", "status"} {
		for name := range fields[part].(map[string]any) {
			if _, known := defined[part].Properties[name]; !known {
				t.Errorf("%s.%s is not defined", part, name)
			}
		}
	}
}
