package cloneset_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/test/growth"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
)

// named is a patch that names n pods to delete, all different.
func named(n int, more string) string {
	var names strings.Builder
	for i := range n {
		fmt.Fprintf(&names, `"pod-%07d",`, i)
	}
	return `{"scaleStrategy":{"podsToDelete":[` + names.String() + `"mine"]}` + more + `}`
}

// TestReviewsGrowWithThePods: twenty times the names cost about twenty times as much, whether they are new, or were there before.
func TestReviewsGrowWithThePods(t *testing.T) {
	const n, times = 1_000, 20
	for name, request := range map[string]func(n int) admission.Request{
		"new": func(n int) admission.Request { return newRequest(t, "v1beta1", `{}`, named(n, "")) },
		"stored": func(n int) admission.Request {
			return newRequest(t, "v1beta1", named(n, ""), named(n, `,"replicas":2`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, n, times, func(n int) func() {
				w, _ := newWebhooks(t, cloneset.Options{}, nil)
				r := request(n)
				return func() { w.Validate(t.Context(), r) }
			})
		})
	}
}

// TestManyFaults: an answer has some faults of many, and the names that were there before have none.
func TestManyFaults(t *testing.T) {
	w, _ := newWebhooks(t, cloneset.Options{}, nil)
	for _, stored := range []string{"", `{}`} {
		answer := w.Validate(t.Context(), newRequest(t, "v1alpha1", stored, named(1000, "")))
		if n := len(plaintest.Causes(answer)); answer.Allowed || n == 0 || n > 100 || !strings.Contains(answer.Result.Message, "and more") {
			t.Errorf("stored %q: allowed %t, %d causes, %.300s", stored, answer.Allowed, n, answer.Result.Message)
		}
	}
	if answer := w.Validate(t.Context(), newRequest(t, "v1alpha1", named(1000, ""), named(1000, `,"replicas":2`))); !answer.Allowed {
		t.Errorf("what was there before: %.300s", answer.Result.Message)
	}
}

// TestOversizedTemplate: a template that no pod needs is rejected without a dry run, and a stored one can be scaled.
func TestOversizedTemplate(t *testing.T) {
	large := func(more string) string {
		return `{"template":{"spec":{"containers":[{"name":"main","image":"app:1","env":[` + strings.Repeat(`{"name":"A"},`, 20_000) + `{"name":"B"}]}]}}` + more + `}`
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		w, asked := newWebhooks(t, cloneset.Options{}, nil)
		request := newRequest(t, version, "", large(""))
		for _, answer := range []admission.Response{w.Mutate(t.Context(), request), w.Validate(t.Context(), request)} {
			if causes := plaintest.Causes(answer); answer.Allowed || len(causes) != 1 || !strings.HasPrefix(causes[0], "spec.template") || *asked > 0 {
				t.Errorf("allowed %t, causes %q, %d calls", answer.Allowed, causes, *asked)
			}
		}
		scaled := newRequest(t, version, large(`,"replicas":9`), large(`,"replicas":10`))
		for _, answer := range []admission.Response{w.Mutate(t.Context(), scaled), w.Validate(t.Context(), scaled)} {
			if !answer.Allowed {
				t.Errorf("a stored one is not scaled: %.300s", answer.Result.Message)
			}
		}
	}
}
