package rollout

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/lifecycle"
)

// standing is the sort key of a pod: smaller values first, and the first difference decides.
type standing [7]int64

// byStanding sorts pods in the order in which ReplicaSets delete them: on no node, not running, not ready, ready for
// less time, restarted more often, newer; then by name.
func byStanding(all []*member) {
	type ranked struct {
		*member
		standing
	}
	list := make([]ranked, len(all))
	for i, m := range all {
		list[i] = ranked{m, standingOf(m.pod)}
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(slices.Compare(a.standing[:], b.standing[:]), byName(a.member, b.member))
	})
	for i := range list {
		all[i] = list[i].member
	}
}

func standingOf(pod *corev1.Pod) standing {
	var s standing
	if pod.Spec.NodeName != "" {
		s[0] = 1
	}
	switch pod.Status.Phase {
	case corev1.PodUnknown:
		s[1] = 1
	case corev1.PodRunning:
		s[1] = 2
	}
	if c := lifecycle.ConditionOf(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		s[2], s[3] = 1, latestFirst(c.LastTransitionTime)
	}
	s[4] = -restarts(pod.Status.ContainerStatuses, func(string) bool { return true })
	s[5] = -restarts(pod.Status.InitContainerStatuses, func(name string) bool {
		return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
			return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		})
	})
	s[6] = latestFirst(pod.CreationTimestamp)
	return s
}

// latestFirst returns the key of a time; a zero time is first.
func latestFirst(t metav1.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return -t.Unix()
}
