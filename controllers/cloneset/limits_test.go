package cloneset

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

// How many pods of a new set of 40 are created at once, for a stored value that no webhook has seen.
func TestScaleMaxUnavailable(t *testing.T) {
	for why, c := range map[string]struct {
		value intstr.IntOrString
		want  int
	}{
		"a number is one of pods":                                {intstr.FromInt32(5), 5},
		"1% of 40, rounded up":                                   {intstr.FromString("1%"), 1},
		"the reference reads each text as a percentage":          {intstr.FromString("5"), 2},
		"no percentage of pods may be unavailable":               {intstr.FromString("0"), 0},
		"less than none is none":                                 {intstr.FromString("-5"), 0},
		"a value that cannot be parsed is as if it were not set": {intstr.FromString("some"), 40},
	} {
		_, p := observe(t, 40, scalesWith(&c.value)).plan()
		if got := len(p.Pass.Creations()); got != c.want {
			t.Errorf("%s: creates %d pods, want %d", why, got, c.want)
		}
	}
}

// A pass builds few pods, however many a set asks for, and fewer of a large template: the manager holds them all.
func TestPodsOfAPass(t *testing.T) {
	for variables, want := range map[int]int{1: 512, 10_000: 54} {
		o := observe(t, math.MaxInt32, func(s *v1beta1.CloneSet) {
			s.Spec.Template.Spec.Containers = []corev1.Container{{Name: podtest.Container, Image: "web:1"}}
			for i := range variables {
				s.Spec.Template.Spec.Containers[0].Env = append(s.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{
					Name: fmt.Sprintf("VARIABLE_%d", i), Value: "some value, as it is usual",
				})
			}
		})
		ids := 0
		o.options.NewID = func() string { ids++; return fmt.Sprintf("%05d", ids) }
		_, p := o.plan()
		if got := len(p.Pass.Next()); got != want {
			t.Errorf("builds %d pods of a template with %d variables, want %d", got, variables, want)
		}
	}
}
