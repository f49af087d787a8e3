// Package order sorts pods as their workload updates them, so that an image comes first to where it is needed first.
//
// When not to use it: to update pods. It asks package scale which pods a plan would take if it could take all.
package order

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/scale"
)

// CloneSet returns pods in the order of a plan that may update all at once.
func CloneSet(set *v1beta1.CloneSet, pods []*corev1.Pod, now time.Time) []*corev1.Pod {
	n := int32(len(pods))
	in := scale.Input{Now: now, UpdateOnly: true, Limits: scale.Limits{Replicas: n, MaxUnavailable: n}}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		in.Priority, in.Scatter = rolling.PriorityStrategy, rolling.ScatterStrategy
	}
	for i, pod := range pods {
		in.Instances = append(in.Instances, scale.Instance{Name: pod.Name, Pods: pods[i : i+1 : i+1]})
	}
	plan, err := scale.Plan(in)
	if err != nil {
		return pods
	}
	rank := map[string]int{}
	for i := range plan.Update {
		rank[plan.Update[i].Name] = i + 1
	}
	// Those that are not updated now, because a hook holds them or an update is under way, are beyond being early.
	return slices.SortedStableFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		// What has no rank comes last.
		return cmp.Compare(uint(rank[a.Name]-1), uint(rank[b.Name]-1))
	})
}

// StatefulSet returns pods from the last ordinal to the first, unless a strategy says otherwise.
func StatefulSet(set *v1beta1.StatefulSet, pods []*corev1.Pod) []*corev1.Pod {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(ordinal(b), ordinal(a)) })
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.UnorderedUpdate == nil {
		return pods
	}
	labelsOf := func(pod *corev1.Pod) map[string]string { return pod.Labels }
	// What cannot be read of the strategy selects nothing, as in the update itself.
	_ = scale.Prioritise(pods, labelsOf, rolling.UnorderedUpdate.PriorityStrategy)
	return pods
}

// ordinal of a pod, -1 where its name has none.
func ordinal(pod *corev1.Pod) int {
	n, err := strconv.ParseUint(pod.Name[strings.LastIndexByte(pod.Name, '-')+1:], 10, 31)
	if err != nil {
		return -1
	}
	return int(n)
}
