package inplace

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/write"
)

// resize writes the resources of the next batch; false where the pod has them. They come before the rest: what the API
// server rejects has then changed nothing, and nothing is forgotten when the other write fails.
func (l look) resize(c *Change) (Action, bool) {
	if len(c.Resources) == 0 {
		return Action{}, false
	}
	batch, _ := split(l.pod, c.due(l.pod), l.policy.Keys)
	var ops []write.Op
	for _, name := range batch {
		ops = append(ops, resizeOps(l.pod, name, c.Resources[name])...)
	}
	if len(ops) == 0 {
		return Action{}, false
	}
	resized := &Change{Resources: only(c.Resources, batch)}
	return Action{
		Verdict: Write, Step: StepResize, Restarts: resized.Restarts(l.pod),
		Write: l.write(write.Resize, func(p *patch) error {
			l.unchanged(p)
			p.ops = append(p.ops, ops...)
			return nil
		}),
	}, true
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
	p := patch{}
	p.amounts(path, "limits", have.Limits, want.Limits)
	p.amounts(path, "requests", have.Requests, want.Requests)
	return p.ops
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

func (p *patch) amounts(path []string, field string, have, want corev1.ResourceList) {
	changed := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		amount, ok := want[name]
		// The API server stores thousandths, rounded up: any finer amount would never be the one that the pod has.
		amount.RoundUp(resource.Milli)
		if before, has := have[name]; ok && (!has || before.Cmp(amount) != 0) {
			changed[name] = amount
		}
	}
	path = append(slices.Clip(path), field)
	if len(changed) > 0 && len(have) == 0 {
		p.set(changed, path...)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		p.set(changed[name], append(slices.Clip(path), string(name))...)
	}
}

// QOSClass returns the QoS class of pods with a spec in which requests default to limits, as the API server stores it.
func QOSClass(s *corev1.PodSpec) corev1.PodQOSClass {
	var all []corev1.ResourceRequirements
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		all = append(all, c.Resources)
	}
	if s.Resources != nil {
		all = []corev1.ResourceRequirements{*s.Resources}
	}
	guaranteed, none := true, true
	for _, r := range all {
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
