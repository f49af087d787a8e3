package cloneset

import (
	"fmt"
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// How many pods of a new set of 40 are created at once, for a stored value that no webhook has seen.
func TestScaleMaxUnavailable(t *testing.T) {
	cases := map[string]struct {
		why   string
		value intstr.IntOrString
		want  int
	}{
		"number":              {"a number is one of pods", intstr.FromInt32(5), 5},
		"percentage":          {"5% of 40", intstr.FromString("5%"), 2},
		"percentage, rounded": {"1% of 40, rounded up", intstr.FromString("1%"), 1},
		"text of a number":    {"the reference reads each text as a percentage", intstr.FromString("5"), 2},
		"text of none":        {"no percentage of pods may be unavailable", intstr.FromString("0"), 0},
		"negative text":       {"less than none is none", intstr.FromString("-5"), 0},
		"no number":           {"a value that cannot be parsed is as if it were not set", intstr.FromString("some"), 40},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set"}}
			set.Spec.Replicas = ptr.To(int32(40))
			set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			set.Spec.Template.Labels = map[string]string{"app": "web"}
			set.Spec.ScaleStrategy.MaxUnavailable = &c.value
			set.Default()
			p, err := Options{}.plan(&snapshot{set: set, Observation: workloads.Observation{
				Object:   set,
				Kind:     gvk(),
				Selector: labels.SelectorFromSet(set.Spec.Template.Labels),
				Now:      time.Unix(1_800_000_000, 0),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(p.Pass.Creations()); got != c.want {
				t.Errorf("%s: creates %d pods, want %d", c.why, got, c.want)
			}
		})
	}
}

// A pass builds few pods, however many a set asks for, and fewer of a large template: the manager holds them all.
func TestPodsOfAPass(t *testing.T) {
	for name, c := range map[string]struct{ variables, want int }{"plain": {1, 512}, "large": {10_000, 54}} {
		t.Run(name, func(t *testing.T) {
			set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set"}}
			set.Spec.Replicas = ptr.To(int32(math.MaxInt32))
			set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			set.Spec.Template.Labels = map[string]string{"app": "web"}
			container := corev1.Container{Name: "app", Image: "app:1"}
			for i := range c.variables {
				container.Env = append(container.Env, corev1.EnvVar{
					Name: fmt.Sprintf("VARIABLE_%d", i), Value: "some value, as it is usual",
				})
			}
			set.Spec.Template.Spec.Containers = []corev1.Container{container}
			set.Default()
			ids := 0
			o := Options{NewID: func() string { ids++; return fmt.Sprintf("%05d", ids) }}
			p, err := o.plan(&snapshot{set: set, Observation: workloads.Observation{
				Object:   set,
				Kind:     gvk(),
				Selector: labels.SelectorFromSet(set.Spec.Template.Labels),
				Now:      time.Unix(1_800_000_000, 0),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(p.Pass.Next()); got != c.want {
				t.Errorf("builds %d pods, want %d", got, c.want)
			}
		})
	}
}
