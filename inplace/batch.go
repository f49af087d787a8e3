package inplace

import (
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
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
	for key := range a {
		if _, ok := b[key]; ok {
			return true
		}
	}
	return false
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
