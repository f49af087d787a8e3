package subset

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step between the costs of two subsets.
const step = 100

// Ranking is what Costs looks at.
type Ranking struct {
	Spread  *Spread
	Limits  []int32
	Members []Member
	// Newest is the version of pods that the target creates.
	Newest string
}

// Cost is the deletion cost of a pod. Workloads delete pods of lower cost first.
type Cost struct {
	Pod   *corev1.Pod
	Value int
}

// Costs returns the deletion cost of each active pod: pods beyond the limit of their subset go first, then those of the
// last subset. For versions other than the newest, those of the first subset. The costs are sorted by the names of the
// pods.
func Costs(in Ranking) []Cost {
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
	costs := make([]Cost, 0, len(in.Members))
	for _, m := range in.Members {
		if !Active(m.Pod) {
			continue
		}
		i, is := index[m.Subset]
		if !is {
			costs = append(costs, Cost{m.Pod, -step * (n + 1)})
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
			slices.SortFunc(pods, deletedFirst)
		}
		for i, pod := range pods {
			value := CostWithin(position, n)
			if i < surplus {
				value = -step * (position + 1)
			}
			costs = append(costs, Cost{pod, value})
		}
	}
	slices.SortFunc(costs, func(a, b Cost) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
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

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// latestFirst orders times; a missing time counts as the latest.
func latestFirst(a, b metav1.Time) int {
	at := func(t metav1.Time) int64 {
		if t.IsZero() {
			return math.MaxInt64
		}
		return t.Unix()
	}
	return cmp.Compare(at(b), at(a))
}

func ready(pod *corev1.Pod) (is bool, since metav1.Time) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue, c.LastTransitionTime
		}
	}
	return false, metav1.Time{}
}

func restarts(pod *corev1.Pod) int32 {
	most := int32(0)
	for i := range pod.Status.ContainerStatuses {
		most = max(most, pod.Status.ContainerStatuses[i].RestartCount)
	}
	return most
}
