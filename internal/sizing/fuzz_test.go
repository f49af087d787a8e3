package sizing_test

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/internal/sizing"
)

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "cpu*50% + 100m", "max(memory*20% + 100Mi, 200Mi)", "MAX(CPU, min(memory/3, -1))", "cpu +*/ 50%", "1e", "1e+",
		"1e3e2", "100Mx", "1.2.3",
		".5-5.", "--(1)", "cpu*cpu", "1/0", "9Pi", "1e100*1e100", "cpu - 1e-100", "max(1,2,3)", "((((", "½\xff", "8Pi+memory",
	} {
		f.Add(text, int64(600), int64(1000<<20*1000))
	}
	f.Add("-cpu-memory", int64(-1<<63), int64(1<<63-1))
	f.Fuzz(func(t *testing.T, text string, cpu, memory int64) {
		e, err := sizing.ParseExpression(text)
		sound(t, text, err)
		if err != nil {
			return
		}
		all := corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewMilliQuantity(memory, resource.BinarySI),
		}
		want, err := e.Evaluate(all)
		sound(t, text, err)
		_, constant := e.Evaluate(nil)
		if err != nil && (constant == nil || !lateFault(err)) {
			t.Fatalf("%q could have been refused by Parse: %v", text, err)
		}
		if err == nil && want.Sign() < 0 {
			t.Fatalf("%q is %s", text, want.String())
		}
		if again, parseErr := sizing.ParseExpression("\t(" + text + ") "); parseErr == nil {
			same(t, text, again, all, want, err)
		} else if fault := new(sizing.ExpressionError); !errors.As(parseErr, &fault) || fault.Reason != sizing.Limit {
			t.Fatalf("%q is refused in parentheses: %v", text, parseErr)
		}
		sound(t, text, e.Check(corev1.ResourceCPU))
	})
}

// sound fails where an error is of another type, or points out of the text.
func sound(t *testing.T, text string, err error) {
	t.Helper()
	var e *sizing.ExpressionError
	if err != nil &&
		(!errors.As(err, &e) || e.At < 0 || e.At > len(text) || e.Expected == "" || e.Found == "" || e.Reason == "") {
		t.Fatalf("%q: %#v", text, err)
	}
}

// lateFault tells whether an error may come as late as from Evaluate, with a value for each variable.
func lateFault(err error) bool {
	var e *sizing.ExpressionError
	return errors.As(err, &e) &&
		slices.Contains([]sizing.Reason{sizing.Overflow, sizing.Negative}, e.Reason)
}

// same fails unless an expression gives this quantity, written so, or fails as the error does.
func same(
	t *testing.T, text string, e sizing.Expression, values corev1.ResourceList, want resource.Quantity, err error,
) {
	t.Helper()
	got, gotErr := e.Evaluate(values)
	if (gotErr == nil) != (err == nil) || got.String() != want.String() {
		t.Fatalf("%q of %v: want %s, %v; got %s, %v", text, values, want.String(), err, got.String(), gotErr)
	}
}
