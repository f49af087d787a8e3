package rollout_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// subject is a pod, and what the one who made it knows of it.
type subject struct {
	pod                                *corev1.Pod
	updated, stuck, underWay, selected bool
	// serves says that it is ready and runs what it should.
	serves bool
}

// oracle says which pods are updated, without any cleverness: it compares each with each, and counts on its fingers.
func oracle(set *v1beta1.SidecarSet, all []subject) []string {
	u := set.Spec.UpdateStrategy
	var waiting []subject
	old, unready := 0, 0
	for _, s := range all {
		switch {
		case s.updated && !s.serves:
			unready++
		case s.updated:
		case s.stuck || s.underWay || !s.selected:
			old++
		default:
			old++
			waiting = append(waiting, s)
		}
	}
	waiting = bubbled(waiting, goesFirst)
	waiting = preferred(waiting, u.PriorityStrategy)
	waiting = scattered(waiting, all, u.ScatterStrategy)
	keep := share(u.Partition.String(), len(all))
	if strings.HasSuffix(u.Partition.String(), "%") && u.Partition.String() != "100%" && len(all) > 1 && keep == len(all) {
		keep--
	}
	budget := share(u.MaxUnavailable.String(), len(all))
	names := []string{}
	for _, s := range waiting {
		if len(names) >= old-min(keep, len(all)) {
			break
		}
		if ready := isReady(s.pod); ready && unready >= budget {
			break
		} else if ready {
			unready++
		}
		names = append(names, s.pod.Name)
	}
	return names
}

// share is a number, or a percentage of all rounded up.
func share(text string, all int) int {
	if number, is := strings.CutSuffix(text, "%"); is {
		percent, _ := strconv.Atoi(number)
		return int(math.Ceil(float64(percent*all) / 100))
	}
	n, _ := strconv.Atoi(text)
	return n
}

func isReady(pod *corev1.Pod) bool {
	c := lifecycle.ConditionOf(pod, corev1.PodReady)
	return pod.Status.Phase == corev1.PodRunning && c != nil && c.Status == corev1.ConditionTrue
}

// bubbled exchanges neighbours until all are in order.
func bubbled(all []subject, before func(a, b subject) bool) []subject {
	all = slices.Clone(all)
	for range all {
		for i := range len(all) - 1 {
			if before(all[i+1], all[i]) {
				all[i], all[i+1] = all[i+1], all[i]
			}
		}
	}
	return all
}

func goesFirst(a, b subject) bool {
	phases := map[corev1.PodPhase]int{corev1.PodPending: 0, corev1.PodUnknown: 1, corev1.PodRunning: 2}
	readyA, readyB := lifecycle.ConditionOf(a.pod, corev1.PodReady), lifecycle.ConditionOf(b.pod, corev1.PodReady)
	switch {
	case (a.pod.Spec.NodeName == "") != (b.pod.Spec.NodeName == ""):
		return a.pod.Spec.NodeName == ""
	case phases[a.pod.Status.Phase] != phases[b.pod.Status.Phase]:
		return phases[a.pod.Status.Phase] < phases[b.pod.Status.Phase]
	case readyA.Status != readyB.Status:
		return readyA.Status == corev1.ConditionFalse
	case readyA.Status == corev1.ConditionTrue && !readyA.LastTransitionTime.Equal(&readyB.LastTransitionTime):
		return readyA.LastTransitionTime.After(readyB.LastTransitionTime.Time)
	case most(a.pod) != most(b.pod):
		return most(a.pod) > most(b.pod)
	case !a.pod.CreationTimestamp.Equal(&b.pod.CreationTimestamp):
		return a.pod.CreationTimestamp.After(b.pod.CreationTimestamp.Time)
	}
	return a.pod.Name < b.pod.Name
}

func most(pod *corev1.Pod) int32 {
	n := int32(0)
	for _, s := range pod.Status.ContainerStatuses {
		n = max(n, s.RestartCount)
	}
	return n
}

func preferred(all []subject, s *kruise.UpdatePriorityStrategy) []subject {
	if s == nil {
		return all
	}
	place := func(x subject) (int, int) {
		if len(s.WeightPriority) > 0 {
			sum := 0
			for _, term := range s.WeightPriority {
				for key, value := range term.MatchSelector.MatchLabels {
					if v, ok := x.pod.Labels[key]; ok && v == value {
						sum += int(term.Weight)
					}
				}
			}
			return 0, -sum
		}
		for i, term := range s.OrderPriority {
			if v, ok := x.pod.Labels[term.OrderedKey]; ok {
				n, _ := strconv.Atoi(v)
				return i, -n
			}
		}
		return -1, 0
	}
	return bubbled(all, func(a, b subject) bool {
		a1, a2 := place(a)
		b1, b2 := place(b)
		return a1 < b1 || a1 == b1 && a2 < b2
	})
}

// scattered follows the words of the promise.
func scattered(waiting, all []subject, s kruise.UpdateScatterStrategy) []subject {
	all = bubbled(all, func(a, b subject) bool { return a.pod.Name < b.pod.Name })
	var terms []kruise.UpdateScatterTerm
	for _, term := range s {
		values := []string{term.Value}
		if term.Value == "*" {
			values = nil
			for _, x := range all {
				if v, ok := x.pod.Labels[term.Key]; ok {
					values = append(values, v)
				}
			}
		}
		for _, v := range values {
			if t := (kruise.UpdateScatterTerm{Key: term.Key, Value: v}); !slices.Contains(terms, t) {
				terms = append(terms, t)
			}
		}
	}
	count := func(t kruise.UpdateScatterTerm, among []subject) int { return len(hits(t, among, true)) }
	if len(terms) > 1 {
		terms = slices.DeleteFunc(terms, func(t kruise.UpdateScatterTerm) bool { return count(t, waiting) == 0 })
		slices.SortStableFunc(terms, func(a, b kruise.UpdateScatterTerm) int { return count(b, waiting) - count(a, waiting) })
	}
	for _, t := range terms {
		waiting = scatteredBy(t, waiting, all)
	}
	return waiting
}

func hits(t kruise.UpdateScatterTerm, among []subject, want bool) []subject {
	var some []subject
	for _, x := range among {
		if v, ok := x.pod.Labels[t.Key]; (ok && v == t.Value) == want {
			some = append(some, x)
		}
	}
	return some
}

func scatteredBy(t kruise.UpdateScatterTerm, waiting, all []subject) []subject {
	hit, miss := hits(t, waiting, true), hits(t, waiting, false)
	if len(hit) <= 1 || len(miss) <= 1 {
		return waiting
	}
	last := hit[len(hit)-1]
	hit = hit[:len(hit)-1]
	allHit, allMiss := float64(len(hits(t, all, true))-1), float64(len(hits(t, all, false)))
	round := func(a, b float64) int { return int(math.Round(a / b)) }
	h, m := float64(len(hit)), float64(len(miss))
	groups := min(len(hit), len(miss))
	hitSize, missSize, rest := round(h, float64(groups)), round(m, float64(groups)), 0
	if allMiss/allHit < m/h {
		n := min(allHit, allMiss)
		hitSize, missSize = round(allHit, n), round(allMiss, n)
		groups = min(len(hit)/hitSize, len(miss)/missSize)
		rest = len(miss) - groups*missSize
	}
	out := slices.Clone(miss[:rest])
	miss = miss[rest:]
	for range groups {
		n, k := min(hitSize, len(hit)), min(missSize, len(miss))
		out = append(append(out, hit[:n]...), miss[:k]...)
		hit, miss = hit[n:], miss[k:]
	}
	return append(append(append(out, hit...), miss...), last)
}

// subjects are pods in all kinds of states.
func (r *random) subjects(before, stale, after *v1beta1.SidecarSet, pods int) []subject {
	all := make([]subject, pods)
	made := map[*v1beta1.SidecarSet]*corev1.Pod{}
	for _, set := range []*v1beta1.SidecarSet{before, stale, after} {
		made[set] = podOf("", set)
	}
	for i := range all {
		s := subject{selected: true}
		podOf := func(name string, set *v1beta1.SidecarSet) *corev1.Pod {
			pod := made[set].DeepCopy()
			pod.Name, pod.UID = name, types.UID(name)
			return pod
		}
		switch r.Intn(6) {
		case 0:
			s.updated, s.pod = true, podOf(fmt.Sprintf("p%03d", i), after)
		case 1:
			s.stuck, s.pod = true, podOf(fmt.Sprintf("p%03d", i), stale)
		default:
			s.pod = podOf(fmt.Sprintf("p%03d", i), before)
			if r.once(6) {
				s.underWay = true
				s.pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = `{"s":{"revision":"x","updateTimestamp":null,"lastContainerStatuses":{"mesh":{"imageID":"sha256:mesh:1"}}}}`
				s.pod.Spec.Containers[0].Image = "mesh:0"
			}
		}
		r.unsettle(&s)
		all[i] = s
	}
	return all
}

// unsettle gives a pod a past.
func (r *random) unsettle(s *subject) {
	pod := s.pod
	if r.once(4) {
		failed(pod, "main")
		readied(pod)
	}
	if r.once(8) {
		pod.Spec.NodeName = ""
	}
	if r.once(8) {
		pod.Status.Phase = pick(r, corev1.PodPending, corev1.PodUnknown)
	}
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].LastTransitionTime = metav1.NewTime(noon().Add(-time.Duration(r.Intn(3)) * time.Hour))
	}
	pod.CreationTimestamp = metav1.NewTime(noon().Add(-time.Duration(r.Intn(3)) * time.Hour))
	pod.Status.ContainerStatuses[1].RestartCount = int32(r.Intn(3))
	for _, key := range []string{"k", "l"} {
		if r.once(2) {
			pod.Labels[key] = fmt.Sprint(r.Intn(6))
		}
	}
	s.serves = isReady(pod) && !s.underWay
}
