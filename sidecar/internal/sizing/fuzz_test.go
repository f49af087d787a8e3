package sizing_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/sidecar/internal/sizing"
)

func FuzzEvaluate(f *testing.F) {
	for _, text := range []string{
		"", "cpu*50% + 100m", "max(memory*20% + 100Mi, 200Mi)", "MAX(CPU, min(memory/3, -1))", "cpu +*/ 50%", "1e", "1e+",
		"1e3e2", "100Mx", "1.2.3",
		".5-5.", "--(1)", "cpu*cpu", "1/0", "9Pi", "1e100*1e100", "cpu - 1e-100", "max(1,2,3)", "((((", "½\xff", "8Pi+memory",
	} {
		f.Add(text, int64(600), int64(1000<<20*1000))
	}
	f.Add("-cpu-memory", int64(-1<<63), int64(1<<63-1))
	f.Fuzz(func(t *testing.T, text string, cpu, memory int64) {
		all := corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewMilliQuantity(memory, resource.BinarySI),
		}
		want, err := sizing.Evaluate(text, all)
		if err == nil && want.Sign() < 0 {
			t.Fatalf("%q is %s", text, want.String())
		}
		inside, again := sizing.Evaluate("\t("+text+") ", all)
		deeper := again != nil &&
			(strings.Contains(again.Error(), "in each other") || strings.Contains(again.Error(), "bytes"))
		if !deeper && ((again == nil) != (err == nil) || inside.String() != want.String()) {
			t.Fatalf("%q of %v: want %s, %v; got %s, %v in parentheses", text, all, want.String(), err, inside.String(), again)
		}
		if sizing.CheckExpression(text, corev1.ResourceCPU) != nil {
			return
		}
		if _, err := sizing.Evaluate(text, all); err != nil && !isLate(err) {
			t.Fatalf("%q could have been refused by CheckExpression: %v", text, err)
		}
	})
}

// isLate reports whether an error depends on the values.
func isLate(err error) bool {
	return strings.Contains(err.Error(), errHeld) || strings.Contains(err.Error(), errNegative)
}
