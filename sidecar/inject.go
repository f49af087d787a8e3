package sidecar

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
)

// Options of an injection.
type Options struct {
	// Now is the time that is recorded on the pod.
	Now time.Time
	// SortContainers puts injected containers in the order of their names. Without it they are in that of the sets, and
	// within a set as they are written. Init containers are always sorted.
	SortContainers bool
}

// Injection is the result for a pod.
type Injection struct {
	// Pod to create, or nil if the pod needs no change.
	Pod *corev1.Pod
	// Notes are the parts of the pod that were replaced, and the parts of the sets that the pod did not get.
	Notes []note.Note
}

// Inject adds to a pod what sets contain, after Select and Resolve. An error means that the pod cannot be created with
// the sets: a *FieldError is of a field of one set, other errors are of the annotations of the pod.
func Inject(pod *corev1.Pod, sets []*Set, o Options) (Injection, error) {
	if len(sets) == 0 {
		return Injection{}, nil
	}
	in := injector{o: o, pod: pod.DeepCopy(), sets: byName(sets), working: map[string]string{}}
	for _, step := range []func() error{in.metadata, in.claim, in.build, in.merge, in.mergeUnknown} {
		if err := step(); err != nil {
			return Injection{}, err
		}
	}
	// Annotations come with every injection, so that the long comparison is for pods that were injected before.
	if maps.Equal(pod.Annotations, in.pod.Annotations) && equality.Semantic.DeepEqual(pod, in.pod) {
		return Injection{Notes: in.notes}, nil
	}
	return Injection{Pod: in.pod, Notes: in.notes}, nil
}

// injector makes one injection. Its steps are called in the order of Inject.
type injector struct {
	o    Options
	pod  *corev1.Pod
	sets []*Set

	// taken are the sets by the names that their containers have in the pod; declared are those names, and the ones that
	// are written in the sets.
	taken    map[string]string
	declared []string
	// sources are the containers of the pod without the mark of injected ones: they lend mounts, devices and variables.
	sources []*corev1.Container
	shared  shared
	// recorded is what the pod records of sets from an earlier admission.
	recorded map[string]kruise.SidecarSetInjected

	inits, containers []added
	volumes           []corev1.Volume
	lenders           []*Set // of the volumes, one for each
	secrets           []corev1.LocalObjectReference
	working           map[string]string
	unknown           unknown
	notes             []note.Note
}

// added is a container that the pod gets.
type added struct {
	corev1.Container
	set    *Set
	before bool
}

func (in *injector) note(code string, set *Set, format string, args ...any) {
	in.notes = append(in.notes, newNote(code, set.Name(), fmt.Sprintf(format, args...)))
}

func (in *injector) metadata() error {
	for _, set := range in.sets {
		if err := in.patchMetadata(set); err != nil {
			return err
		}
	}
	return nil
}

// claim collects the names that the sets take, and the containers of the pod that lend.
func (in *injector) claim() error {
	in.taken = map[string]string{}
	for _, set := range in.sets {
		if err := in.claimNames(set, set.inits, in.pod.Spec.Containers); err != nil {
			return err
		}
		if err := in.claimNames(set, set.containers, in.pod.Spec.InitContainers); err != nil {
			return err
		}
	}
	for i := range in.pod.Spec.InitContainers {
		if c := &in.pod.Spec.InitContainers[i]; !in.isOwn(c) {
			in.declared = append(in.declared, c.Name)
		}
	}
	for i := range in.pod.Spec.Containers {
		c := &in.pod.Spec.Containers[i]
		if !in.isOwn(c) {
			in.declared = append(in.declared, c.Name)
		}
		if !IsInjected(c) {
			in.sources = append(in.sources, c)
		}
	}
	in.shared = share(in.sources)
	in.recorded, _ = ReadInjected(in.pod.Annotations[kruise.SidecarSetHashKey]) // record returns the error
	return nil
}

// claimNames takes the names of the set's containers; others are the containers of the pod of the other kind.
func (in *injector) claimNames(set *Set, parts []part, others []corev1.Container) error {
	for i := range parts {
		p := &parts[i]
		in.declared = append(in.declared, p.Name)
		for _, name := range p.names {
			if other, twice := in.taken[name]; twice {
				return set.refuse(p, fmt.Errorf("container %s is of sidecarset %s too: %w", name, other, ErrClash))
			}
			if indexOf(others, name) >= 0 {
				return set.refuse(p, fmt.Errorf("container %s is beside one of another kind: %w", name, ErrClash))
			}
			in.taken[name] = set.Name()
		}
	}
	return nil
}

// refuse returns the error of a container that the pod cannot get.
func (s *Set) refuse(p *part, err error) error {
	return &FieldError{Set: s.Name(), Field: p.field, Err: err}
}

// isOwn reports whether no set brought a container or will replace it.
func (in *injector) isOwn(c *corev1.Container) bool {
	_, replaced := in.taken[c.Name]
	return !replaced && !IsInjected(c)
}

// IsInjected reports whether a container has the mark of injected ones.
func IsInjected(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.Name == kruise.SidecarInjectedEnvName && e.Value == "true"
	})
}

func indexOf(containers []corev1.Container, name string) int {
	return slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
}

// build makes the containers, and collects what they need.
func (in *injector) build() error {
	for _, set := range in.sets {
		for i := range set.inits {
			if err := in.add(set, &set.inits[i], &in.inits); err != nil {
				return err
			}
		}
		for i := range set.containers {
			if err := in.add(set, &set.containers[i], &in.containers); err != nil {
				return err
			}
		}
		in.secrets = append(in.secrets, set.object.Spec.ImagePullSecrets...)
	}
	return nil
}

func (in *injector) add(set *Set, p *part, to *[]added) error {
	c, err := in.container(set, p)
	if err != nil {
		return set.refuse(p, fmt.Errorf("container %s: %w", p.Name, err))
	}
	all := []corev1.Container{*c}
	if len(p.names) > 1 {
		if all, err = in.pair(p, c); err != nil {
			return set.refuse(p, fmt.Errorf("container %s: %w", p.Name, err))
		}
	}
	in.takeUnknown(set, p, all, to == &in.inits)
	for i := range all {
		*to = append(*to, added{Container: all[i], set: set, before: p.PodInjectPolicy == appsv1beta1.BeforeAppContainerType})
	}
	return nil
}
