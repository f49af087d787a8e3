package kinds_test

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

const (
	mutate   = "/mutate"
	validate = "/validate"
)

// sets is a kind with a pod template, in two versions.
func sets() kinds.Row[*appsv1beta1.CloneSet] {
	return kinds.Row[*appsv1beta1.CloneSet]{
		Kind: appsv1beta1.GroupVersion.WithKind("CloneSet"),
		Hub:  &appsv1beta1.CloneSet{}, Old: &appsv1alpha1.CloneSet{},
		MutatePath: mutate, ValidatePath: validate,
		Validate: validation.CloneSet, ValidateUpdate: validation.CloneSetUpdate,
		Template: &kinds.Template{},
	}
}

// spreads is a kind without a pod template.
func spreads() kinds.Row[*appsv1beta1.WorkloadSpread] {
	return kinds.Row[*appsv1beta1.WorkloadSpread]{
		Kind: appsv1beta1.GroupVersion.WithKind("WorkloadSpread"),
		Hub:  &appsv1beta1.WorkloadSpread{}, Old: &appsv1alpha1.WorkloadSpread{},
		ValidatePath: validate,
	}
}

func serve[T client.Object](t testing.TB, api kinds.API, row kinds.Row[T], o kinds.Options) kinds.Webhooks {
	t.Helper()
	w, err := kinds.New(api, row, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// spec is that of a CloneSet of one container, in either version, changed by a merge patch.
func spec(t testing.TB, patch string) string {
	t.Helper()
	const plain = `{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},
		"spec":{"containers":[{"name":"main","image":"app:1"}]}}}`
	return plaintest.Patched(t, plain, patch)
}

// change is a request for a CloneSet. It is an update where there is something stored. Both are patches of a plain
// spec.
func change(t testing.TB, version, stored, now string) admission.Request {
	t.Helper()
	object := func(patch string) string {
		return `{"metadata":{"name":"a","namespace":"shop","uid":"1"},"spec":` + spec(t, patch) + `}`
	}
	if stored != "" {
		stored = object(stored)
	}
	return raw(version, "", object(now), stored)
}

// raw is a request for a CloneSet. Without an operation it creates or updates.
func raw(version string, operation admissionv1.Operation, now, stored string) admission.Request {
	r := plaintest.Request(plaintest.Kind("CloneSet"), version, now, stored)
	if operation != "" {
		r.Operation = operation
	}
	return r
}

// rolling wraps a patch of the block of rolling updates.
func rolling(patch string) string {
	return `{"updateStrategy":{"rollingUpdate":` + patch + `}}`
}
