package scope_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// newSet makes a set of a spec in YAML.
func newSet(t testing.TB, name, spec string) *appsv1beta1.SidecarSet {
	t.Helper()
	set := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &set.Spec); err != nil {
		t.Fatal(err)
	}
	return set
}

func open(set *appsv1beta1.SidecarSet) *appsv1beta1.SidecarSet {
	set.Annotations = map[string]string{appsv1beta1.SidecarSetInjectionFailurePolicyAnnotation: "Ignore"}
	return set
}

// world is the objects and the steps that contribute to a scope.
type world struct {
	scope.Input
	Sets []*appsv1beta1.SidecarSet
	// Owned, All, Launch and Liveness add the conditions of the steps.
	Owned, All, Launch, Liveness bool
	// Closed and Open are the namespaces of objects.
	Closed, Open []string
}

// input returns a world of sets alone, without the other steps.
func input(sets ...*appsv1beta1.SidecarSet) world {
	return world{
		Sets: sets, Input: scope.Input{Namespace: "kruise-system", Client: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{
				Namespace: "kruise-system", Name: "kruise-webhook-service", Path: ptr.To("/mutate-pod"),
			},
		}},
	}
}

// contributions are those of the production sources, without the conditions that the world leaves out.
func (w world) contributions(t testing.TB) []scope.Contribution {
	t.Helper()
	var all []scope.Contribution
	for _, s := range scope.Sources(scope.SourceOptions{ReadinessGateForAll: w.All, EnhancedLiveness: w.Liveness}) {
		var objects []*unstructured.Unstructured
		if s.Kind == scope.Kind() {
			for _, set := range w.Sets {
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
				if err != nil {
					t.Fatal(err)
				}
				objects = append(objects, &unstructured.Unstructured{Object: content})
			}
		}
		c := s.Contribute(objects)
		if s.Step == "launch" && !w.Launch {
			c.Conditions = nil
		}
		if s.Step == "readiness" && !w.Owned && !w.All {
			c.Conditions = nil
		}
		all = append(all, c)
	}
	return append(all, scope.Contribution{Closed: w.Closed, Open: w.Open})
}

func compute(t testing.TB, w world) scope.Scope {
	t.Helper()
	w.Contributions = w.contributions(t)
	return scope.Plan(w.Input)
}
