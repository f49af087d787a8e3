package failure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/failure"
)

func TestClasses(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	type classes struct{ refusal, mayBe, final bool }
	cases := map[string]struct {
		err  error
		want classes
	}{
		"no error":              {nil, classes{}},
		"a conflict":            {apierrors.NewConflict(pods, "a", nil), classes{refusal: true, mayBe: true}},
		"not found":             {apierrors.NewNotFound(pods, "a"), classes{refusal: true, mayBe: true}},
		"already exists":        {apierrors.NewAlreadyExists(pods, "a"), classes{refusal: true, mayBe: true}},
		"invalid":               {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), classes{refusal: true, mayBe: true, final: true}},
		"forbidden":             {apierrors.NewForbidden(pods, "a", nil), classes{refusal: true, mayBe: true, final: true}},
		"a bad request":         {apierrors.NewBadRequest("no"), classes{refusal: true, mayBe: true, final: true}},
		"wrapped":               {fmt.Errorf("write pod: %w", apierrors.NewBadRequest("no")), classes{refusal: true, mayBe: true, final: true}},
		"a failing webhook":     {apierrors.NewInternalError(errors.New("webhook")), classes{mayBe: true}},
		"unauthorized":          {apierrors.NewUnauthorized("who"), classes{}},
		"too many requests":     {apierrors.NewTooManyRequests("slow down", 1), classes{}},
		"a timeout":             {apierrors.NewTimeoutError("slow", 1), classes{}},
		"unavailable":           {apierrors.NewServiceUnavailable("later"), classes{}},
		"a broken connection":   {errors.New("connection reset"), classes{}},
		"a deadline of our own": {context.DeadlineExceeded, classes{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := classes{failure.IsRefusal(c.err), failure.MayBeRefusal(c.err), failure.IsFinal(c.err)}
			if got != c.want {
				t.Errorf("%v: got %+v, want %+v", c.err, got, c.want)
			}
		})
	}
}

func TestTerminal(t *testing.T) {
	spec, transient := errors.New("spec"), errors.New("transient")
	isSpec := func(err error) bool { return errors.Is(err, spec) }
	cases := map[string]struct {
		err      error
		parts    int
		terminal bool
	}{
		"no error":              {nil, 0, false},
		"the spec":              {fmt.Errorf("read: %w", spec), 1, true},
		"the spec, twice":       {errors.Join(spec, errors.Join(spec, nil)), 2, true},
		"transient":             {transient, 1, false},
		"the spec, and another": {errors.Join(spec, errors.Join(transient)), 2, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := failure.Terminal(c.err, isSpec)
			if errors.Is(got, reconcile.TerminalError(nil)) != c.terminal || len(failure.Parts(c.err)) != c.parts {
				t.Errorf("got %v of %d parts", got, len(failure.Parts(c.err)))
			}
			if (got == nil) != (c.err == nil) {
				t.Errorf("got %v", got)
			}
		})
	}
}
