package inplace_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
)

// randomTemplate has some of everything, within what the API server takes.
func randomTemplate(r *rand.Rand) *corev1.PodTemplateSpec {
	t := template()
	for i := range 1 + r.IntN(4) {
		t.Spec.Containers = append(t.Spec.Containers, randomContainer(r, fmt.Sprintf("c%d", i)))
	}
	for i := range r.IntN(3) {
		c := randomContainer(r, fmt.Sprintf("i%d", i))
		if r.IntN(2) == 0 {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		t.Spec.InitContainers = append(t.Spec.InitContainers, c)
	}
	for range r.IntN(4) {
		randomMetadata(r, t)
	}
	if r.IntN(4) == 0 {
		randomSpec(r, t)
	}
	return t
}

func randomContainer(r *rand.Rand, name string) corev1.Container {
	c := container(name, oneOf(r, "app:1", "app:2", "app"))
	for _, field := range []string{
		"metadata.labels['a']", "metadata.labels['b/c']", "metadata.annotations['a']", "status.podIP",
	} {
		if r.IntN(4) == 0 {
			fed(fmt.Sprintf("E%d", len(c.Env)), field)(&c)
		}
	}
	randomResources(r, &c)
	return c
}

// randomResources never asks for more than the limit.
func randomResources(r *rand.Rand, c *corev1.Container) {
	c.Resources = corev1.ResourceRequirements{}
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		if r.IntN(3) > 0 {
			if c.Resources.Requests == nil {
				c.Resources.Requests = corev1.ResourceList{}
			}
			c.Resources.Requests[name] = amounts("x", oneOf(r, "1", "1000m", "2"))["x"]
		}
		if r.IntN(3) == 0 {
			if c.Resources.Limits == nil {
				c.Resources.Limits = corev1.ResourceList{}
			}
			c.Resources.Limits[name] = amounts("x", oneOf(r, "2", "3"))["x"]
		}
	}
}

func randomMetadata(r *rand.Rand, t *corev1.PodTemplateSpec) {
	key := oneOf(r, "a", "b/c", "d~e")
	switch r.IntN(6) {
	case 0:
		delete(t.Labels, key)
	case 1:
		delete(t.Annotations, key)
	case 2:
		t.Finalizers = oneOf(r, nil, []string{"x/y"}, []string{"x/y", "z/w"}, []string{"z/w"})
	case 3:
		annotate(key, oneOf(r, "", "1", "2"))(t)
	default:
		label(key, oneOf(r, "", "1", "2"))(t)
	}
}

// mutate changes a template at random; most changes are such as pods survive.
func mutate(r *rand.Rand, t *corev1.PodTemplateSpec) {
	c := &t.Spec.Containers[r.IntN(len(t.Spec.Containers))]
	if n := len(t.Spec.InitContainers); n > 0 && r.IntN(4) == 0 {
		c = &t.Spec.InitContainers[r.IntN(n)]
	}
	switch r.IntN(16) {
	case 0, 1, 2, 3:
		c.Image = oneOf(r, "app:1", "app:2", "app", "app:3")
	case 4, 5:
		randomResources(r, c)
	case 6, 7, 8, 9, 10:
		randomMetadata(r, t)
	case 11:
		shuffle(r, t)
	case 14:
		randomSpec(r, t)
	case 12:
		filled, _ := revision.Comparable(t, t)
		*t = *filled
	case 13:
		oneOf(r, func() { randomSpec(r, t) },
			func() { c.Env = append(c.Env, corev1.EnvVar{Name: "NEW", Value: "1"}) },
			func() { c.Name += "x" },
			func() { c.WorkingDir = "/else" },
			func() { c.ImagePullPolicy = corev1.PullNever },
			func() { t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: "v"}) },
			func() { t.Spec.NodeName = "n" },
			func() { t.Spec.Containers = append(t.Spec.Containers, container("extra", "app:1")) },
			func() { t.Spec.InitContainers = nil },
			func() { c.RestartPolicy = nil },
			func() {
				c.Resources.Limits = maps.Clone(c.Resources.Limits)
				if c.Resources.Limits != nil {
					c.Resources.Limits["gpu"] = amounts("gpu", "1")["gpu"]
				}
			},
			func() {
				c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.NotRequired}}
			},
		)()
	default:
	}
}

// randomSpec changes what may change in the spec of a running pod, in either direction.
func randomSpec(r *rand.Rand, t *corev1.PodTemplateSpec) {
	s := &t.Spec
	switch n := len(s.Tolerations); r.IntN(8) {
	case 0:
		s.ActiveDeadlineSeconds = oneOf(r, nil, ptr.To[int64](100), ptr.To[int64](200))
	case 1, 2, 3:
		s.ActiveDeadlineSeconds = ptr.To[int64](50)
	case 4:
		s.Tolerations = slices.Delete(slices.Clone(s.Tolerations), 0, min(n, 1))
	default:
		if n < 3 { // never one twice
			if n > 0 {
				n = int(*s.Tolerations[n-1].TolerationSeconds) + 1
			}
			s.Tolerations = append(slices.Clip(s.Tolerations), corev1.Toleration{
				Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: ptr.To(int64(n)),
			})
		}
	}
}

func shuffle(r *rand.Rand, t *corev1.PodTemplateSpec) {
	for _, list := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
}

// TestDiffProperty compares with a dull second opinion: whether the fixed parts of two templates are the same, and
// whether the change, written into one, gives the other.
func TestDiffProperty(t *testing.T) {
	r := newRand(t)
	blocked, changed := 0, 0
	for i := range 20_000 / fewer() {
		from := randomTemplate(r)
		to := from.DeepCopy()
		for range r.IntN(4) {
			mutate(r, to)
		}
		o := inplace.Policy{
			Env:       oneOf(r, inplace.EnvRestart, inplace.EnvBlock, inplace.EnvIgnore),
			Resources: oneOf(r, inplace.ResourcesFixed, inplace.ResourcesReplaced, inplace.ResourcesAdded),
		}
		x, y := from.DeepCopy(), to.DeepCopy()
		c, err := inplace.Diff(from, to, o)
		var because *inplace.BlockedError
		if fixed := whyNot(from, to, o); (fixed != "") != errors.As(err, &because) {
			t.Fatalf("second opinion: %q, got %v\nfrom %s\nto   %s\nby   %+v", fixed, err, encoded(t, from), encoded(t, to), o)
		}
		if err != nil {
			blocked++
		} else {
			// Pods have the defaults filled in: a limit alone is a request, too.
			pod, _ := revision.Comparable(from, from)
			if got := written(pod, c); !revision.Same(byName(got), byName(to)) {
				t.Fatalf("wrong change %s\nfrom %s\nto   %s\ngot  %s", tidy(*c), encoded(t, from), encoded(t, to), encoded(t, got))
			}
			if !c.Empty() {
				changed++
			} else if !revision.Same(byName(from), byName(to)) {
				t.Fatalf("an empty change of something\nfrom %s\nto   %s", encoded(t, from), encoded(t, to))
			}
		}
		if i%4 > 0 {
			continue
		}
		second, _ := inplace.Diff(from, to, o)
		if !apiequality.Semantic.DeepEqual(c, second) || !apiequality.Semantic.DeepEqual(x, from) ||
			!apiequality.Semantic.DeepEqual(y, to) {
			t.Fatalf("another answer, or an input is changed\nfrom %s\nto   %s", encoded(t, x), encoded(t, y))
		}
		filled, _ := revision.Comparable(from, from)
		shuffle(r, filled)
		for _, same := range []*corev1.PodTemplateSpec{from, filled} {
			if c, err := inplace.Diff(from, same, o); err != nil || !c.Empty() {
				t.Fatalf("a template and itself differ: %v, %v\n%s", c, err, encoded(t, from))
			}
		}
	}
	if blocked < 2_000/fewer() || changed < 4_000/fewer() {
		t.Errorf("want enough of both, got %d blocked and %d changed", blocked, changed)
	}
}

// whyNot says why a pod of one template cannot become one of another; empty when it can.
func whyNot(from, to *corev1.PodTemplateSpec, o inplace.Policy) string {
	from, to = revision.Comparable(from, to)
	if o.Env == inplace.EnvBlock && feedsChange(from, to) {
		return "a fed variable"
	}
	from, to = byName(from), byName(to)
	sizes := false
	for _, pair := range pairs(from, to) {
		a, b := pair[0], pair[1]
		if a.Name[0] == 'i' {
			continue
		}
		a.Image = b.Image
		if o.Resources == inplace.ResourcesFixed {
			continue
		}
		for _, lists := range [][2]corev1.ResourceList{
			{a.Resources.Limits, b.Resources.Limits}, {a.Resources.Requests, b.Resources.Requests},
		} {
			for _, name := range []corev1.ResourceName{"cpu", "memory"} {
				was, had := lists[0][name]
				is, has := lists[1][name]
				if had && !has {
					return "a removed amount"
				}
				if !had && has && o.Resources != inplace.ResourcesAdded {
					return "an added amount"
				}
				sizes = sizes || has && was.Cmp(is) != 0
			}
		}
	}
	if sizes && naiveClass(from) != naiveClass(to) {
		return "the class of service"
	}
	for _, pair := range pairs(from, to) {
		a, b := pair[0], pair[1]
		if a.Name[0] == 'i' || o.Resources == inplace.ResourcesFixed {
			continue
		}
		for _, list := range []corev1.ResourceList{
			a.Resources.Limits, a.Resources.Requests, b.Resources.Limits, b.Resources.Requests,
		} {
			delete(list, "cpu")
			delete(list, "memory")
		}
	}
	if !apiequality.Semantic.DeepEqual(from.Spec, to.Spec) {
		return "a fixed field"
	}
	return ""
}

// pairs are the containers that both templates have.
func pairs(from, to *corev1.PodTemplateSpec) [][2]*corev1.Container {
	var both [][2]*corev1.Container
	for _, lists := range [][2][]corev1.Container{
		{from.Spec.Containers, to.Spec.Containers}, {from.Spec.InitContainers, to.Spec.InitContainers},
	} {
		for i := range lists[0] {
			if j := indexOf(lists[1], lists[0][i].Name); j >= 0 {
				both = append(both, [2]*corev1.Container{&lists[0][i], &lists[1][j]})
			}
		}
	}
	return both
}

// naiveClass adds everything up, as the API server does. Amounts of 0 do not occur.
func naiveClass(t *corev1.PodTemplateSpec) corev1.PodQOSClass {
	some, all := false, true
	for _, c := range slices.Concat(t.Spec.Containers, t.Spec.InitContainers) {
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			request, requested := c.Resources.Requests[name]
			limit, limited := c.Resources.Limits[name]
			some = some || requested || limited
			all = all && requested && limited && request.Cmp(limit) == 0
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case all:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

func feedsChange(from, to *corev1.PodTemplateSpec) bool {
	differs := func(a, b map[string]string, key string) bool {
		x, had := a[key]
		y, has := b[key]
		return had != has || x != y
	}
	for _, c := range to.Spec.Containers {
		for _, e := range c.Env {
			if e.ValueFrom == nil {
				continue
			}
			for _, key := range []string{"a", "b/c"} {
				if e.ValueFrom.FieldRef.FieldPath == "metadata.labels['"+key+"']" && differs(from.Labels, to.Labels, key) ||
					e.ValueFrom.FieldRef.FieldPath == "metadata.annotations['"+key+"']" &&
						differs(from.Annotations, to.Annotations, key) {
					return true
				}
			}
		}
	}
	return false
}

// written is a template with a change written into it.
func written(t *corev1.PodTemplateSpec, c *inplace.Change) *corev1.PodTemplateSpec {
	t = t.DeepCopy()
	for _, list := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
		for i := range list {
			if image, ok := c.Images[list[i].Name]; ok {
				list[i].Image = image
			}
			for name, amount := range c.Resources[list[i].Name].Limits {
				if list[i].Resources.Limits == nil {
					list[i].Resources.Limits = corev1.ResourceList{}
				}
				list[i].Resources.Limits[name] = amount
			}
			for name, amount := range c.Resources[list[i].Name].Requests {
				if list[i].Resources.Requests == nil {
					list[i].Resources.Requests = corev1.ResourceList{}
				}
				list[i].Resources.Requests[name] = amount
			}
		}
	}
	for _, refs := range c.RefMetadata {
		for key, value := range refs.Labels {
			label(key, value)(t)
		}
		for key, value := range refs.Annotations {
			annotate(key, value)(t)
		}
	}
	for key, value := range c.Metadata.Labels {
		if value == nil {
			delete(t.Labels, key)
		} else {
			label(key, *value)(t)
		}
	}
	for key, value := range c.Metadata.Annotations {
		if value == nil {
			delete(t.Annotations, key)
		} else {
			annotate(key, *value)(t)
		}
	}
	t.Finalizers = slices.DeleteFunc(t.Finalizers, func(f string) bool {
		return slices.Contains(c.Metadata.RemoveFinalizers, f)
	})
	t.Finalizers = append(t.Finalizers, c.Metadata.AddFinalizers...)
	return t
}

// byName is a template with all lists sorted whose order is no matter.
func byName(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	t = t.DeepCopy()
	for _, list := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
		slices.SortFunc(list, func(a, b corev1.Container) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.Sort(t.Finalizers)
	slices.SortFunc(t.Spec.Tolerations, func(a, b corev1.Toleration) int { return strings.Compare(jsonOf(a), jsonOf(b)) })
	return t
}
