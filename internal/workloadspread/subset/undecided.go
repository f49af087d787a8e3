package subset

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Undecided returns the pods of which Assign reads the whole spec: each that it adopts where several subsets suit the
// node of the pod, and a subset has a patch of more than metadata. A cache may lack most of the spec.
func (in *Assignment) Undecided() []*corev1.Pod {
	subsets := in.Spread.Spec.Subsets
	if !slices.ContainsFunc(subsets, func(s Subset) bool { return patchesSpec(s.Patch.Raw) }) {
		return nil
	}
	var all []*corev1.Pod
	for _, pod := range in.Pods {
		m, is := MatchOf(pod)
		if is && m.Name == in.Spread.Name && m.Subset != "" || pod.Spec.NodeName == "" {
			continue
		}
		node := in.Node(pod.Spec.NodeName)
		if node == nil {
			continue
		}
		suit := 0
		for _, s := range subsets {
			s.Patch.Raw = nil
			if _, suits := Score(pod, node, &s); suits {
				suit++
			}
		}
		if suit > 1 {
			all = append(all, pod)
		}
	}
	return all
}

// patchesSpec reports whether a patch has more than metadata.
func patchesSpec(patch []byte) bool {
	var fields map[string]json.RawMessage
	if len(patch) == 0 || json.Unmarshal(patch, &fields) != nil {
		return false // a patch that cannot be read changes nothing
	}
	delete(fields, "metadata")
	return len(fields) > 0
}
