package rollout_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// TestScatterByAnyValue: the order is that of one term for each value, applied one after the other, whatever terms are
// left out because they cannot change it.
func TestScatterByAnyValue(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	eachCase(t, 200, func(r *random) string {
		values := 1 + r.Intn(12)
		var pods, waiting []*corev1.Pod
		after := edited(before, image("mesh:2"), maxUnavailable("100%"), func(s *v1beta1.SidecarSet) {
			s.Spec.UpdateStrategy.ScatterStrategy = pick(r,
				kruise.UpdateScatterStrategy{{Key: "k", Value: "*"}},
				kruise.UpdateScatterStrategy{{Key: "k", Value: "1"}, {Key: "k", Value: "*"}},
				kruise.UpdateScatterStrategy{{Key: "k", Value: "*"}, {Key: "l", Value: "*"}, {Key: "k", Value: "*"}})
		})
		for i := range 1 + r.Intn(24) {
			sets := pick(r, before, before, before, after)
			pod := podOf(fmt.Sprintf("pod-%02d", i), sets)
			for _, key := range []string{"k", "l"} {
				if !r.once(5) {
					pod.Labels[key] = fmt.Sprint(r.Intn(values))
				}
			}
			if pods = append(pods, pod); sets == before {
				waiting = append(waiting, pod)
			}
		}
		plain := edited(after, func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.ScatterStrategy = nil })
		order := updated(compute(t, input(plain, pods...))) // as without scatter
		slices.SortFunc(waiting, func(a, b *corev1.Pod) int {
			return slices.Index(order, a.Name) - slices.Index(order, b.Name)
		})
		var want []string
		for _, pod := range oneByOne(waiting, pods, after.Spec.UpdateStrategy.ScatterStrategy) {
			want = append(want, pod.Name)
		}
		if got := updated(compute(t, input(after, pods...))); !slices.Equal(got, want) {
			return fmt.Sprintf("want %s, got %s", want, got)
		}
		return ""
	})
}

// oneByOne scatters by each value of each term, the commonest first.
func oneByOne(waiting, all []*corev1.Pod, s kruise.UpdateScatterStrategy) []*corev1.Pod {
	var terms kruise.UpdateScatterStrategy
	for _, term := range s {
		for _, pod := range all {
			value, ok := pod.Labels[term.Key]
			t := kruise.UpdateScatterTerm{Key: term.Key, Value: value}
			if ok && (term.Value == "*" || term.Value == value) && !slices.Contains(terms, t) {
				terms = append(terms, t)
			}
		}
	}
	count := func(t kruise.UpdateScatterTerm) (n int) {
		for _, pod := range waiting {
			if value, ok := pod.Labels[t.Key]; ok && value == t.Value {
				n++
			}
		}
		return n
	}
	slices.SortStableFunc(terms, func(a, b kruise.UpdateScatterTerm) int { return count(b) - count(a) })
	for _, term := range terms {
		waiting = scale.Scatter(waiting, all, func(pod *corev1.Pod) map[string]string { return pod.Labels },
			kruise.UpdateScatterStrategy{term})
	}
	return waiting
}

// TestManyValues: very many values scatter as well as they can, and no pod is lost.
func TestManyValues(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	var pods []*corev1.Pod
	for i := range 1200 {
		pod := podOf(fmt.Sprintf("pod-%04d", i), before)
		pod.Labels["k"] = fmt.Sprint(i / 2)
		pods = append(pods, pod)
	}
	change := func(s *v1beta1.SidecarSet) {
		s.Spec.UpdateStrategy.ScatterStrategy = kruise.UpdateScatterStrategy{{Key: "k", Value: "*"}}
	}
	names := updated(compute(t, input(edited(before, image("mesh:2"), maxUnavailable("100%"), change), pods...)))
	if n := len(slices.Compact(slices.Sorted(slices.Values(names)))); n != len(pods) || len(names) != n {
		t.Errorf("%d updates of %d pods", len(names), n)
	}
}
