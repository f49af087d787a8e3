package subset

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/scale"
)

// step between the costs of two subsets.
const step = 100

// Costs returns the deletion cost of each active pod, by its name. Workloads delete pods of lower cost first: pods
// beyond the limit of their subset, then those of the last subset. For versions but the newest, those of the
// first subset.
func Costs(in Observation) map[string]int {
	n := len(in.Spread.Spec.Subsets)
	index := map[string]int{}
	for i := range in.Spread.Spec.Subsets {
		index[in.Spread.Spec.Subsets[i].Name] = i
	}
	type place struct {
		version string
		subset  int
	}
	groups := map[place][]*corev1.Pod{}
	costs := map[string]int{}
	for _, m := range in.Members {
		if !Active(m.Pod) {
			continue
		}
		i, ok := index[m.Subset]
		if !ok {
			costs[m.Pod.Name] = -step * (n + 1)
			continue
		}
		groups[place{m.Version, i}] = append(groups[place{m.Version, i}], m.Pod)
	}
	for at, pods := range groups {
		position := at.subset
		if at.version != in.Newest {
			position = n - 1 - at.subset
		}
		surplus := 0
		if limit := in.Limits[at.subset]; limit >= 0 && len(pods) > int(limit) {
			surplus = len(pods) - int(limit)
			slices.SortFunc(pods, func(a, b *corev1.Pod) int {
				return cmp.Or(slices.Compare(scale.Standing(a), scale.Standing(b)), strings.Compare(a.Name, b.Name))
			})
		}
		for i, pod := range pods {
			costs[pod.Name] = CostWithin(position, n)
			if i < surplus {
				costs[pod.Name] = -step * (position + 1)
			}
		}
	}
	return costs
}

// CostWithin returns the deletion cost of a pod of the newest version within the limit of its subset, by the index of
// the subset.
func CostWithin(index, subsets int) int { return step * (subsets - index) }

// OwnCost reports whether a deletion cost is one that Costs gives for so many subsets.
func OwnCost(value string, subsets int) bool {
	n, err := strconv.Atoi(value)
	return err == nil && n != 0 && n%step == 0 && n >= -step*(subsets+1) && n <= step*subsets
}
