package podprobe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// Stamps reports whether a marker may have probes for Stamp: it selects pods, is not being deleted, and has a probe
// with a condition.
func Stamps(m *v1alpha1.PodProbeMarker) bool {
	return m.DeletionTimestamp == nil && Selector(m).String() != labels.Nothing().String() &&
		slices.ContainsFunc(m.Spec.Probes, func(p v1alpha1.PodContainerProbe) bool { return p.PodConditionType != "" })
}

// Stamp returns the annotations of a new pod by which the provider of a virtual node runs the probes of markers; nil
// where there are none. Only probes with a condition count. Of several for one condition, or for one container and
// name, the first by the name of its marker does. Probes of containers that the pod lacks, or that end before it runs,
// are left out.
func Stamp(pod *corev1.Pod, markers []*v1alpha1.PodProbeMarker) (map[string]string, error) {
	type probe struct{ container, name string }
	var probes []v1alpha1.PodContainerProbe
	var names []string
	conditions, taken := map[string]bool{}, map[probe]bool{}
	for _, m := range Selecting(pod, markers) {
		for i := range m.Spec.Probes {
			p := m.Spec.Probes[i]
			is := probe{p.ContainerName, p.Name}
			if _, has := portsOf(pod, p.ContainerName); !has || p.PodConditionType == "" || conditions[p.PodConditionType] ||
				taken[is] {
				continue
			}
			conditions[p.PodConditionType], taken[is] = true, true
			p.MarkerPolicy = nil
			probes = append(probes, p)
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	if len(probes) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(probes)
	if err != nil {
		return nil, fmt.Errorf("encode probes: %w", err)
	}
	return map[string]string{
		kruise.PodProbeMarkerAnnotationKey:     string(text),
		kruise.PodProbeMarkerListAnnotationKey: strings.Join(names, ","),
	}, nil
}
