package pod

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// difference returns the JSON patch from one state of a pod to another. It compares part by part what steps usually
// change, without encoding the rest: of an existing container only its variables, of the lists the new elements. It
// compares the rest as a whole.
func difference(before, after *corev1.Pod) ([]write.Op, error) {
	if !revision.HasUnknownFields(after) {
		return changes(before, after)
	}
	ops, err := changes(withoutUnknown(before), withoutUnknown(after))
	if err != nil || len(ops) == 0 {
		return ops, err
	}
	fields, err := revision.WithUnknownFields(after)
	if err != nil {
		return nil, err
	}
	for i := range ops {
		if value, ok := at(fields, ops[i].Path); ok && ops[i].Op != "remove" && isFinal(ops[i].Path) {
			ops[i].Value = value
		}
	}
	return ops, nil
}

// isFinal reports whether the value at the path of an op is that of the changed pod: the indexes of the lists that list
// compares are final, those of other lists may change with the ops that follow.
func isFinal(path string) bool {
	fields := strings.Split(path, "/")[1:]
	if len(fields) < 2 || fields[0] != "spec" {
		return false
	}
	switch fields[1] {
	case "initContainers", "containers", "volumes", "imagePullSecrets", "readinessGates":
		return true
	}
	return !slices.ContainsFunc(fields, func(f string) bool { return f != "" && f[0] >= '0' && f[0] <= '9' })
}

// withoutUnknown returns a pod without the annotation of unknown fields.
func withoutUnknown(pod *corev1.Pod) *corev1.Pod {
	known := *pod
	known.Annotations = maps.Clone(pod.Annotations)
	delete(known.Annotations, revision.UnknownFieldsKey)
	return &known
}

// at returns the JSON value at the path of an op.
func at(value any, path string) (any, bool) {
	for key := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		switch v := value.(type) {
		case map[string]any:
			var ok bool
			if value, ok = v[key]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// changes is difference of the fields that the types have.
func changes(before, after *corev1.Pod) ([]write.Op, error) {
	var d differ
	if before.Name != after.Name {
		d.add("/metadata/name", after.Name)
	}
	d.strings("/metadata/labels", before.Labels, after.Labels)
	d.strings("/metadata/annotations", before.Annotations, after.Annotations)
	b, a := &before.Spec, &after.Spec
	d.containers("/spec/initContainers", b.InitContainers, a.InitContainers)
	d.containers("/spec/containers", b.Containers, a.Containers)
	list(&d, "/spec/volumes", pair[corev1.Volume]{
		b.Volumes, a.Volumes, func(v *corev1.Volume) string { return v.Name }, nil,
	})
	list(&d, "/spec/imagePullSecrets", pair[corev1.LocalObjectReference]{
		b.ImagePullSecrets, a.ImagePullSecrets, func(s *corev1.LocalObjectReference) string { return s.Name }, nil,
	})
	list(&d, "/spec/readinessGates", pair[corev1.PodReadinessGate]{
		b.ReadinessGates, a.ReadinessGates, func(g *corev1.PodReadinessGate) string { return string(g.ConditionType) }, nil,
	})
	return d.rest(before, after)
}

// equal compares semantically, and first deeply, which is much faster for equal values.
func equal(a, b any) bool { return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b) }

type differ struct{ patch []write.Op }

// add sets a key, or inserts an element into a list.
func (d *differ) add(path string, value any) {
	d.patch = append(d.patch, write.Add(path, value))
}

func (d *differ) replace(path string, value any) {
	d.patch = append(d.patch, write.Replace(path, value))
}

// strings compares labels or annotations. A removed key replaces the whole map.
func (d *differ) strings(at string, before, after map[string]string) {
	if maps.Equal(before, after) {
		return
	}
	for key := range before {
		if _, stays := after[key]; !stays {
			d.add(at, after)
			return
		}
	}
	if len(before) == 0 {
		d.add(at, after)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if was, there := before[key]; !there || was != after[key] {
			d.add(at+"/"+write.Escape(key), after[key])
		}
	}
}

func (d *differ) containers(at string, before, after []corev1.Container) {
	list(d, at, pair[corev1.Container]{before, after, func(c *corev1.Container) string { return c.Name }, d.variables})
}

// variables compares two containers by their variables. It returns false if another field differs.
func (d *differ) variables(at string, before, after *corev1.Container) bool {
	b, a := *before, *after
	b.Env, a.Env = nil, nil
	if !equal(&b, &a) {
		return false
	}
	list(d, at+"/env", pair[corev1.EnvVar]{before.Env, after.Env, func(e *corev1.EnvVar) string { return e.Name }, nil})
	return true
}

// pair is a list before and after.
type pair[T any] struct {
	before, after []T
	name          func(*T) string
	// inside compares two elements of the same name part by part; false, or nil, has the element exchanged.
	inside func(at string, before, after *T) bool
}

// list compares lists whose elements have names, from the front, so that the elements before an index are already
// final.
func list[T any](d *differ, at string, p pair[T]) {
	if len(p.before) == len(p.after) && equal(p.before, p.after) {
		return
	}
	if len(p.before) == 0 || !grown(p) {
		d.add(at, p.after)
		return
	}
	i := 0
	for j := range p.after {
		path, now := at+"/"+strconv.Itoa(j), &p.after[j]
		if i == len(p.before) || p.name(now) != p.name(&p.before[i]) {
			d.add(path, now)
			continue
		}
		was := &p.before[i]
		i++
		if equal(was, now) {
			continue
		}
		if p.inside == nil || !p.inside(path, was, now) {
			d.replace(path, now)
		}
	}
}

// grown reports whether every element before is there after, in the same order.
func grown[T any](p pair[T]) bool {
	i := 0
	for j := range p.after {
		if i < len(p.before) && p.name(&p.after[j]) == p.name(&p.before[i]) {
			i++
		}
	}
	return i == len(p.before)
}

// rest compares the remainder of the pod.
func (d *differ) rest(before, after *corev1.Pod) ([]write.Op, error) {
	b, a := remainder(before), remainder(after)
	if equal(b, a) {
		return d.patch, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	if err != nil {
		return nil, fmt.Errorf("encode pod: %w", err)
	}
	more, err := review.Changes(content, b, a)
	if err != nil {
		return nil, err
	}
	return append(d.patch, more...), nil
}

// remainder returns a pod without what is compared part by part.
func remainder(pod *corev1.Pod) *corev1.Pod {
	r := *pod
	r.Name, r.Labels, r.Annotations = "", nil, nil
	r.Spec.InitContainers, r.Spec.Containers, r.Spec.Volumes = nil, nil, nil
	r.Spec.ImagePullSecrets, r.Spec.ReadinessGates = nil, nil
	return &r
}
