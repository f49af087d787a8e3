package inplace

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/write"
)

// LaunchPriority is the launch priority in the key of a container's barrier; false when it has none. Nil keys are those
// of OpenKruise.
func LaunchPriority(c *corev1.Container, keys *kruise.Keys) (int, bool) {
	for i := range c.Env {
		e := &c.Env[i]
		if e.Name != keys.LaunchBarrierEnvName() {
			continue
		}
		if e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil {
			return 0, true
		}
		n, err := strconv.Atoi(strings.TrimPrefix(e.ValueFrom.ConfigMapKeyRef.Key, kruise.ContainerLaunchBarrierKeyPrefix))
		if err != nil {
			return 0, true
		}
		return n, true
	}
	return 0, false
}

// split takes from a change what is written now: the containers without priority, those with the highest, and
// all that share a label or an annotation with these. The rest has no metadata of the pod left. Containers that the
// pod does not have are forgotten.
func split(pod *corev1.Pod, c *Change, keys *kruise.Keys) (now []string, rest *Change) {
	involved := involvedIn(pod, c)
	highest := math.MinInt
	priorities := make(map[string]int, len(involved))
	for _, name := range involved {
		c := find(pod.Spec.Containers, name)
		if c == nil {
			continue // the pod as a whole
		}
		if p, ok := LaunchPriority(c, keys); ok {
			priorities[name] = p
			highest = max(highest, p)
		}
	}
	for _, name := range involved {
		if p, ok := priorities[name]; !ok || p == highest {
			now = append(now, name)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, name := range involved {
			if !slices.Contains(now, name) && slices.ContainsFunc(now, func(other string) bool {
				return share(c.RefMetadata[name], c.RefMetadata[other])
			}) {
				now, grown = append(now, name), true
			}
		}
	}
	slices.Sort(now)
	if len(now) == len(involved) {
		return now, &Change{}
	}
	later := minus(involved, now)
	return now, &Change{
		Images: only(c.Images, later), Resources: only(c.Resources, later), RefMetadata: only(c.RefMetadata, later),
	}
}

// involvedIn are the containers of a pod that a change names, sorted, and podLevel.
func involvedIn(pod *corev1.Pod, c *Change) []string {
	var names []string
	if _, ok := c.Resources[podLevel]; ok && pod.Spec.Resources != nil {
		names = append(names, podLevel)
	}
	for i := range pod.Spec.Containers {
		name := pod.Spec.Containers[i].Name
		_, image := c.Images[name]
		_, resources := c.Resources[name]
		_, refs := c.RefMetadata[name]
		if image || resources || refs {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func share(a, b metav1.ObjectMeta) bool {
	return overlaps(a.Labels, b.Labels) || overlaps(a.Annotations, b.Annotations)
}

func overlaps(a, b map[string]string) bool {
	return sets.KeySet(a).Intersection(sets.KeySet(b)).Len() > 0
}

// only are the entries of some keys.
func only[V any](m map[string]V, keys []string) map[string]V {
	some := map[string]V{}
	for _, key := range keys {
		if v, ok := m[key]; ok {
			some[key] = v
		}
	}
	return some
}

// writeBatch writes the next batch of a change: its resources, and where the pod has them what rest writes. Resources
// come before the rest: what the API server rejects has then changed nothing, and nothing is forgotten when the other
// write fails.
func (l look) writeBatch(c *Change, rest body) Action {
	c = c.due(l.pod)
	batch, _ := split(l.pod, c, l.policy.Keys)
	var ops []write.Op
	for _, name := range batch {
		ops = append(ops, resizeOps(l.pod, name, c.Resources[name])...)
	}
	if len(ops) == 0 {
		action := l.patch(StepChange, rest)
		action.Restarts = l.inBatch(c, batch).Restarts(l.pod)
		return action
	}
	resized := &Change{Resources: only(c.Resources, batch)}
	return Action{
		Verdict: Write, Step: StepResize, Restarts: resized.Restarts(l.pod),
		Write: l.write(write.Resize, func() ([]write.Op, error) { return append(l.unchanged(), ops...), nil }),
	}
}

// resizeOps write those amounts of cpu and memory that differ.
func resizeOps(pod *corev1.Pod, name string, want corev1.ResourceRequirements) []write.Op {
	have, path := resourcesOf(pod, name), []string{"spec", "resources"}
	if have == nil {
		return nil
	}
	if name != podLevel {
		path = []string{"spec", "containers", positionOf(pod, name), "resources"}
	}
	limits := amountOps(append(path, "limits"), have.Limits, want.Limits)
	return append(limits, amountOps(append(path, "requests"), have.Requests, want.Requests)...)
}

// resourcesOf returns the resources of a container, or of the pod as a whole; nil where the pod has none.
func resourcesOf(pod *corev1.Pod, name string) *corev1.ResourceRequirements {
	if name == podLevel {
		return pod.Spec.Resources
	}
	if c := find(pod.Spec.Containers, name); c != nil {
		return &c.Resources
	}
	return nil
}

// positionOf returns the index of a container that the pod has.
func positionOf(pod *corev1.Pod, name string) string {
	return strconv.Itoa(slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }))
}

func amountOps(path []string, have, want corev1.ResourceList) []write.Op {
	changed := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		amount, ok := want[name]
		// The API server stores thousandths, rounded up: any finer amount would never be the one that the pod has.
		amount.RoundUp(resource.Milli)
		if before, has := have[name]; ok && (!has || before.Cmp(amount) != 0) {
			changed[name] = amount
		}
	}
	if len(changed) > 0 && len(have) == 0 {
		return []write.Op{write.Add(write.Pointer(path...), changed)}
	}
	var ops []write.Op
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		ops = append(ops, write.Add(write.Pointer(append(path, string(name))...), changed[name]))
	}
	return ops
}

// QOSClass returns the QoS class of pods with a spec in which requests default to limits, as the API server stores it.
func QOSClass(s *corev1.PodSpec) corev1.PodQOSClass {
	all := slices.Concat(s.InitContainers, s.Containers)
	if s.Resources != nil {
		all = []corev1.Container{{Resources: *s.Resources}}
	}
	guaranteed, none := true, true
	for i := range all {
		r := &all[i].Resources
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			if !request.IsZero() || !limit.IsZero() {
				none = false
			}
			if limit.IsZero() || request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case none:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
