package subset

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// Undecided returns the pods of which Assign reads the whole spec: each that it adopts where several subsets suit the
// node of the pod, and one of them has a patch of more than metadata. A cache may lack most of the spec.
func (in *Assignment) Undecided() []*corev1.Pod {
	patches := false
	for i := range in.Spread.Spec.Subsets {
		patches = patches || patchesSpec(in.Spread.Spec.Subsets[i].Patch.Raw)
	}
	if !patches {
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
		suit, patched := 0, false
		for i := range in.Spread.Spec.Subsets {
			s := in.Spread.Spec.Subsets[i]
			spec := patchesSpec(s.Patch.Raw)
			s.Patch.Raw = nil
			if _, suits := Score(pod, node, &s); suits {
				suit++
				patched = patched || spec
			}
		}
		if suit > 1 && patched {
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
