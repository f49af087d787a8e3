package scope_test

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

func podStates(t *testing.T, all ...*appsv1beta1.PersistentPodState) scope.Scope {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, s := range all {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	in := input().Input
	in.Contributions = []scope.Contribution{scope.States().Contribute(objects)}
	s, err := scope.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func podState(namespace, name string, required bool) *appsv1beta1.PersistentPodState {
	s := &appsv1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Spec.TargetReference = appsv1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name}
	if required {
		s.Spec.RequiredPersistentTopology = &appsv1beta1.NodeTopologyTerm{Keys: []string{"zone"}}
	}
	return s
}

// Pods of the targets are sent: those with a required topology are not created without an answer, the others are.
func TestStates(t *testing.T) {
	if s := podStates(t); len(s.Entries) > 0 {
		t.Errorf("without objects: %v", s.Entries)
	}
	broken := podState("shop", "broken", true)
	broken.Spec.TargetReference.APIVersion = "a/b/c"
	s := podStates(t, podState("shop", "db", true), podState("shop", "cache", false), podState("a", "db", true), broken)
	if len(s.Entries) != 2 {
		t.Fatalf("%d entries", len(s.Entries))
	}
	const owner = "(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, " +
		"has(o.controller) && o.controller && (request.namespace + '/' + o.kind + '/' + o.name)"
	for i, want := range []string{
		owner + " in ['a/StatefulSet/db','shop/StatefulSet/db']))", owner + " == 'shop/StatefulSet/cache'))",
	} {
		if got := s.Entries[i].MatchConditions[0].Expression; !strings.Contains(got, want) {
			t.Errorf("%s", got)
		}
		if fails := *s.Entries[i].FailurePolicy == admissionregistrationv1.Fail; fails != (i == 0) {
			t.Errorf("entry %d fails %t", i, fails)
		}
	}
	var many []*appsv1beta1.PersistentPodState
	for i := range 129 {
		many = append(many, podState("greedy", fmt.Sprintf("db-%d", i), true))
	}
	s = podStates(t, append(many, podState("shop", "db", true))...)
	if got := s.Entries[0].MatchConditions[0].Expression; !strings.Contains(got, "request.namespace == 'greedy'") ||
		!strings.Contains(got, "'shop/StatefulSet/db'") || len(got) > 1000 {
		t.Errorf("%s", got)
	}
}
