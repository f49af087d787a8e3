package scope_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// input has sets alone, and no other step.
func input(sets ...*appsv1beta1.SidecarSet) scope.Input {
	return scope.Input{Sets: sets, Namespace: "kruise-system", Client: admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "kruise-system", Name: "kruise-webhook-service", Path: ptr.To("/mutate-pod")},
	}}
}

func compute(t testing.TB, in scope.Input) scope.Scope {
	t.Helper()
	s, err := scope.Compute(in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
