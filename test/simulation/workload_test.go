package simulation

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// shop is the object that the controller looks after: a number of pods, or of groups of pods.
type shop struct {
	Name string
	// Spec is written by the user.
	Spec spec
	// Current is the name of the revision that pods are updated from. The controller writes it.
	Current string
}

type spec struct {
	Replicas       int32
	Template       corev1.PodTemplateSpec
	Partition      string
	MaxUnavailable string
	MaxSurge       string
	// MaxUnavailableScaling limits how many are created at once; 0 for no limit.
	MaxUnavailableScaling int32
	MinReadySeconds       int32
	Paused                bool
	// Recreate updates pods by deleting them.
	Recreate     bool
	GraceSeconds int32
	Hooks        *kruise.Lifecycle
	// Size is the number of pods of a group, of which the first is the leader; 0 for pods on their own.
	Size int
	// Slots gives pods their place for a name; InOrder lets one wait for those before it.
	Slots, InOrder bool
}

// limits are the bounds as numbers. The users of this world write no nonsense.
func (s *spec) limits() (scale.Limits, error) {
	partition := amount(s.Partition)
	old, err := scale.Partition(&partition, s.Replicas)
	if err != nil {
		return scale.Limits{}, err
	}
	surge, err := scale.Amount(amount(s.MaxSurge), s.Replicas, scale.RoundUp)
	if err != nil {
		return scale.Limits{}, err
	}
	rounding := scale.RoundUp
	if surge > 0 {
		rounding = scale.RoundDown
	}
	unavailable, err := scale.Amount(amount(s.MaxUnavailable), s.Replicas, rounding)
	if err != nil {
		return scale.Limits{}, err
	}
	l := scale.Limits{
		Replicas: s.Replicas, Partition: old, MaxUnavailable: unavailable, MaxSurge: surge,
	}
	if s.MaxUnavailableScaling > 0 {
		l.MaxUnavailableScaling = &s.MaxUnavailableScaling
	}
	return l, nil
}

func amount(text string) intstr.IntOrString {
	if text == "" {
		return intstr.FromInt32(0)
	}
	return intstr.Parse(text)
}

// templateOf is a pod that serves, of one container. A version of broken... never becomes ready, one of missing... is no
// image that there is.
func templateOf(version string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{versionKey: version}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:" + version}}},
	}
}

// versionKey is what stories call a template by.
const versionKey = "simulation/version"

func versionOf(m *metav1.ObjectMeta) string { return m.Annotations[versionKey] }

// withEnv changes what only a new pod can have.
func withEnv(t corev1.PodTemplateSpec, value string) corev1.PodTemplateSpec {
	t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: value}}
	return t
}

// fed gives the container a variable that is fed from a label.
func fed(t corev1.PodTemplateSpec, value string) corev1.PodTemplateSpec {
	t.Labels = map[string]string{"app": "shop", "level": value}
	t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['level']"},
	}}}
	return t
}

// hooked gives pods from their birth what a hook holds them by later.
func hooked(t corev1.PodTemplateSpec, hooks ...*kruise.LifecycleHook) corev1.PodTemplateSpec {
	for _, h := range hooks {
		maps.Copy(t.Labels, h.LabelsHandler)
		t.Finalizers = append(t.Finalizers, h.FinalizersHandler...)
	}
	return t
}

func broken(image string) bool  { return strings.Contains(image, ":broken") }
func missing(image string) bool { return strings.Contains(image, ":missing") }
