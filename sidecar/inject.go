package sidecar

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
)

// Options of an injection.
type Options struct {
	// Now is the time that is recorded on the pod.
	Now time.Time
	// SortContainers puts injected containers in the order of their names. Without it they are in that of the sets, and
	// within a set as they are written. Init containers are always sorted.
	SortContainers bool
	// Evaluate computes an expression of a resourcesPolicy. It is given the one variable that is known: memory if the
	// expression has that word in lower case, else cpu. Its value is what the pod's own containers have of the resource
	// that is computed. Without Evaluate a set that has a resourcesPolicy is ErrNoEvaluate.
	Evaluate func(text string, given corev1.ResourceList) (resource.Quantity, error)
}

// Injection is what a pod becomes.
type Injection struct {
	// Pod to create, or nil if it is right as it is.
	Pod *corev1.Pod
	// Notes say what of the pod was replaced, and what of the sets it did not get.
	Notes []Note
}

// Inject adds to a pod what sets want, after Select and Resolve. An error means that the pod cannot be created as the sets
// want it.
func Inject(pod *corev1.Pod, sets []*appsv1beta1.SidecarSet, o Options) (Injection, error) {
	if len(sets) == 0 {
		return Injection{}, nil
	}
	in := injector{o: o, pod: pod.DeepCopy(), sets: byName(sets), working: map[string]string{}}
	for _, step := range []func() error{in.metadata, in.claim, in.build, in.merge} {
		if err := step(); err != nil {
			return Injection{}, err
		}
	}
	if equality.Semantic.DeepEqual(pod, in.pod) {
		return Injection{Notes: in.notes}, nil
	}
	return Injection{Pod: in.pod, Notes: in.notes}, nil
}

// injector is an injection on its way. Its steps are called in the order of Inject.
type injector struct {
	o    Options
	pod  *corev1.Pod
	sets []*appsv1beta1.SidecarSet

	// taken are the sets by the names that their containers have in the pod; declared are those names, and the ones that
	// are written in the sets.
	taken    map[string]string
	declared map[string]bool
	// own are the containers of the pod that no set brought or will replace.
	own    []*corev1.Container
	shared shared

	inits, containers []added
	volumes           []corev1.Volume
	secrets           []corev1.LocalObjectReference
	working           map[string]string
	notes             []Note
}

// added is a container on its way into the pod.
type added struct {
	corev1.Container
	set    *appsv1beta1.SidecarSet
	before bool
}

func (in *injector) note(code string, set *appsv1beta1.SidecarSet, format string, args ...any) {
	in.notes = append(in.notes, Note{Code: code, Object: set.Name, Text: fmt.Sprintf(format, args...)})
}

func (in *injector) metadata() error {
	for _, set := range in.sets {
		if err := in.patchMetadata(set); err != nil {
			return fmt.Errorf("inject sidecarset %s: %w", set.Name, err)
		}
	}
	return nil
}

// claim finds out which names the sets take, and so which containers are the pod's own.
func (in *injector) claim() error {
	in.taken, in.declared = map[string]string{}, map[string]bool{}
	for _, set := range in.sets {
		for list, containers := range [][]appsv1beta1.SidecarContainer{set.Spec.InitContainers, set.Spec.Containers} {
			others := in.pod.Spec.Containers
			if list == 1 {
				others = in.pod.Spec.InitContainers
			}
			for i := range containers {
				in.declared[containers[i].Name] = true
				for _, name := range podNames(&containers[i], list == 0) {
					other, twice := in.taken[name]
					if twice {
						return fmt.Errorf("inject container %s of sidecarsets %s and %s: %w", name, other, set.Name, ErrClash)
					}
					if indexOf(others, name) >= 0 {
						return fmt.Errorf("inject container %s of sidecarset %s beside one of another kind: %w", name, set.Name, ErrClash)
					}
					in.taken[name], in.declared[name] = set.Name, true
				}
			}
		}
	}
	for i := range in.pod.Spec.Containers {
		if c := &in.pod.Spec.Containers[i]; in.isOwn(c) {
			in.own = append(in.own, c)
		}
	}
	in.shared = share(in.own)
	return nil
}

func (in *injector) isOwn(c *corev1.Container) bool {
	_, replaced := in.taken[c.Name]
	return !replaced && !isInjected(c)
}

// isInjected says that a container came from a set.
func isInjected(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.Name == pub.SidecarInjectedEnvName && e.Value == "true"
	})
}

func indexOf(containers []corev1.Container, name string) int {
	return slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
}

// build makes the containers, and collects what they need.
func (in *injector) build() error {
	for _, set := range in.sets {
		for i := range set.Spec.InitContainers {
			if err := in.add(set, &set.Spec.InitContainers[i], &in.inits); err != nil {
				return err
			}
		}
		for i := range set.Spec.Containers {
			if err := in.add(set, &set.Spec.Containers[i], &in.containers); err != nil {
				return err
			}
		}
		in.secrets = append(in.secrets, set.Spec.ImagePullSecrets...)
	}
	return nil
}

func (in *injector) add(set *appsv1beta1.SidecarSet, sc *appsv1beta1.SidecarContainer, to *[]added) error {
	c, err := in.container(set, sc)
	if err != nil {
		return fmt.Errorf("inject container %s of sidecarset %s: %w", sc.Name, set.Name, err)
	}
	all := []corev1.Container{*c}
	if isHot(sc, to == &in.inits) {
		if all, err = in.pair(sc, c); err != nil {
			return fmt.Errorf("inject container %s of sidecarset %s: %w", sc.Name, set.Name, err)
		}
	}
	for i := range all {
		*to = append(*to, added{Container: all[i], set: set, before: sc.PodInjectPolicy == appsv1beta1.BeforeAppContainerType})
	}
	return nil
}
