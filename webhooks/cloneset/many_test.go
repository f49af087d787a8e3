package cloneset_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/test/growth"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// named is a patch that names n pods to delete, all different.
func named(n int, more string) string {
	var names strings.Builder
	for i := range n {
		fmt.Fprintf(&names, `"pod-%07d",`, i)
	}
	return `{"scaleStrategy":{"podsToDelete":[` + names.String() + `"mine"]}` + more + `}`
}

// TestReviewsGrowWithThePods: twenty times the names cost about twenty times as much, whether they are new, or were
// there before.
func TestReviewsGrowWithThePods(t *testing.T) {
	const n, times = 1_000, 20
	for name, of := range map[string]func(n int) admission.Request{
		"new": func(n int) admission.Request { return request(t, [3]string{"v1beta1", `{}`, named(n, "")}) },
		"stored": func(n int) admission.Request {
			return request(t, [3]string{"v1beta1", named(n, ""), named(n, `,"replicas":2`)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, n, times, func(n int) func() {
				w, err := cloneset.New(plainServer(new(int), nil), kinds.Options{})
				if err != nil {
					t.Fatal(err)
				}
				r := of(n)
				return func() { w[cloneset.ValidatePath](t.Context(), r) }
			})
		})
	}
}

// TestManyFaults: an answer has some faults of many, and the names that were there before have none.
func TestManyFaults(t *testing.T) {
	for _, stored := range []string{"", `{}`} {
		answer, _ := review(t, nil, cloneset.ValidatePath, [3]string{"v1alpha1", stored, named(1000, "")})
		if n := len(plaintest.Causes(answer)); answer.Allowed || n == 0 || n > 100 ||
			!strings.Contains(answer.Result.Message, "and more") {
			t.Errorf("stored %q: allowed %t, %d causes, %.300s", stored, answer.Allowed, n, answer.Result.Message)
		}
	}
	change := [3]string{"v1alpha1", named(1000, ""), named(1000, `,"replicas":2`)}
	if answer, _ := review(t, nil, cloneset.ValidatePath, change); !answer.Allowed {
		t.Errorf("what was there before: %.300s", answer.Result.Message)
	}
}
