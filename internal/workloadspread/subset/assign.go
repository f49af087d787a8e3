package subset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// Assignment is what Assign looks at.
type Assignment struct {
	Spread *Spread
	Limits []int32
	// Pods of the target that the filter selects.
	Pods []*corev1.Pod
	// Version returns the version of a pod.
	Version func(*corev1.Pod) string
	// Node returns the node of a pod; nil where there is none.
	Node func(name string) *corev1.Node
}

// Member is a pod and where it belongs.
type Member struct {
	Pod     *corev1.Pod
	Version string
	// Subset is the name of a subset, or Outside.
	Subset string
	// Adopted reports that the pod lacks the annotation, and is on a node of the subset.
	Adopted bool
}

// Assign returns the subset of each pod: the one that the annotation names, or for older pods the one that suits its
// node best. The members are sorted by name.
func Assign(in Assignment) []Member {
	pods := slices.Clone(in.Pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	members := make([]Member, len(pods))
	known := map[string]int{}
	for i := range in.Spread.Spec.Subsets {
		known[in.Spread.Spec.Subsets[i].Name] = i
	}
	type place struct{ version, subset string }
	taken := map[place]int{}
	var older []int
	for i, pod := range pods {
		members[i] = Member{Pod: pod, Version: in.Version(pod), Subset: Outside}
		m, is := MatchOf(pod)
		if !is || m.Name != in.Spread.Name || m.Subset == "" {
			older = append(older, i)
			continue
		}
		if _, ok := known[m.Subset]; ok {
			members[i].Subset = m.Subset
			if Active(pod) {
				taken[place{members[i].Version, m.Subset}]++
			}
		}
	}
	for _, i := range older {
		m := &members[i]
		best := in.best(m.Pod, func(s int) bool {
			return in.Limits[s] == Unlimited ||
				int64(taken[place{m.Version, in.Spread.Spec.Subsets[s].Name}]) < int64(in.Limits[s])
		})
		if best < 0 {
			continue
		}
		m.Subset, m.Adopted = in.Spread.Spec.Subsets[best].Name, true
		if Active(m.Pod) {
			taken[place{m.Version, m.Subset}]++
		}
	}
	return members
}

// best returns the subset that suits the node of a pod best; negative for none.
func (in *Assignment) best(pod *corev1.Pod, room func(subset int) bool) int {
	if pod.Spec.NodeName == "" {
		return -1
	}
	node := in.Node(pod.Spec.NodeName)
	if node == nil {
		return -1
	}
	best, most := -1, int64(-1)
	for i := range in.Spread.Spec.Subsets {
		score, suits := Score(pod, node, &in.Spread.Spec.Subsets[i])
		if !suits {
			continue
		}
		if room(i) {
			score++
		}
		if score > most {
			best, most = i, score
		}
	}
	return best
}

// Score rates how well a subset suits a pod on its node; false where the subset excludes the node. Preferred terms
// weigh more than a patch that the pod has already.
func Score(pod *corev1.Pod, node *corev1.Node, s *Subset) (int64, bool) {
	spec := &corev1.PodSpec{Affinity: pod.Spec.Affinity.DeepCopy(), Tolerations: pod.Spec.Tolerations}
	constrain(spec, s)
	if !eligible.Compile(spec, eligible.Options{}).Check(node).Run {
		return 0, false
	}
	score := int64(0)
	if len(s.PreferredNodeSelector) > 0 {
		if terms, err := nodeaffinity.NewPreferredSchedulingTerms(s.PreferredNodeSelector); err == nil {
			score += 100 * terms.Score(node)
		}
	}
	if hasPatch(pod, s.Patch.Raw) {
		score += 10
	}
	return score, true
}

// hasPatch reports whether a patch changes nothing of a pod but annotations.
func hasPatch(pod *corev1.Pod, patch []byte) bool {
	if len(patch) == 0 {
		return false
	}
	next, err := patched(pod.DeepCopy(), patch)
	if err != nil {
		return false
	}
	next.Annotations = pod.Annotations
	return equality.Semantic.DeepEqual(next, pod)
}

// Marks returns the labels and the annotations that an adopted pod is to have: the annotation that names the subset,
// and the metadata of the subset's patch, unless the WorkloadSpread excludes those. It returns the pod's own where the
// pod is not adopted.
func Marks(ws *Spread, m Member) (labels, annotations map[string]string, err error) {
	labels, annotations = m.Pod.Labels, m.Pod.Annotations
	if !m.Adopted {
		return labels, annotations, nil
	}
	s := Named(ws, m.Subset)
	const ignore = appsv1beta1.WorkloadSpreadIgnorePatchExistingPodsAnnotation
	if s != nil && len(s.Patch.Raw) > 0 && !strings.EqualFold(ws.Annotations[ignore], "true") {
		var part struct { // the rest cannot change in a running pod
			Metadata json.RawMessage `json:"metadata,omitempty"`
		}
		bare := &corev1.Pod{}
		bare.Labels, bare.Annotations = m.Pod.Labels, m.Pod.Annotations
		err := json.Unmarshal(s.Patch.Raw, &part)
		if err == nil && part.Metadata != nil {
			bare, err = patched(bare, fmt.Appendf(nil, `{"metadata":%s}`, part.Metadata))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("patch of subset %s: %w", s.Name, err)
		}
		labels, annotations = bare.Labels, bare.Annotations
	}
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kruise.MatchedWorkloadSpreadKey] = Text(Match{Name: ws.Name, Subset: m.Subset})
	return labels, annotations, nil
}
