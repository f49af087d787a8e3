package scale_test

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/scale"
)

// The oracle plans as the rules stand in the specification, one instance at a time, with no thought of speed.
type oracle struct{ in scale.Input }

func podsOf(i scale.Instance) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(i.Pods), func(p *corev1.Pod) bool { return p == nil })
}

func anyPod(i scale.Instance, is func(*corev1.Pod) bool) bool {
	return slices.ContainsFunc(podsOf(i), is)
}

func inState(state pub.LifecycleState) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Labels[pub.LifecycleStateKey] == string(state) }
}

func leaving(i scale.Instance) bool { return anyPod(i, inState(pub.LifecycleStatePreparingDelete)) }

func preparing(i scale.Instance) bool { return anyPod(i, inState(pub.LifecycleStatePreparingUpdate)) }

func isReady(p *corev1.Pod) bool {
	return p.Status.Conditions[0].Type == corev1.PodReady && p.Status.Conditions[0].Status == corev1.ConditionTrue
}

func (o oracle) fit(i scale.Instance, seconds int32) bool {
	if i.Terminating || len(podsOf(i)) < i.Size || len(podsOf(i)) == 0 {
		return false
	}
	return !anyPod(i, func(p *corev1.Pod) bool {
		state := p.Labels[pub.LifecycleStateKey]
		inPlace := len(p.Status.Conditions) < 2 || p.Status.Conditions[1].Status == corev1.ConditionTrue
		since := p.Status.Conditions[0].LastTransitionTime
		long := seconds == 0 || !since.IsZero() && !since.Add(time.Duration(seconds)*time.Second).After(o.in.Now)
		return p.Status.Phase != corev1.PodRunning || !isReady(p) || state != "" && state != "Normal" || !inPlace || !long
	})
}

func (o oracle) ready(i scale.Instance) bool     { return o.fit(i, 0) }
func (o oracle) available(i scale.Instance) bool { return o.fit(i, o.in.MinReadySeconds) }

func (o oracle) count(updated bool, isUpdated func(scale.Instance) bool) scale.Count {
	c := scale.Count{}
	for _, i := range o.in.Instances {
		switch {
		case i.Terminating || isUpdated(i) != updated:
		case leaving(i):
			c.Leaving++
		case i.Doomed:
			c.Doomed++
		case o.available(i):
			c.Available++
		default:
			c.Unavailable++
		}
	}
	return c
}

// before says whether a is to go before b, by the keys that have a name.
func (o oracle) before(a, b scale.Instance, with string, rank func(scale.Instance) *big.Int) bool {
	weakest := func(i scale.Instance, key func(*corev1.Pod) int64) int64 {
		least := int64(1) << 62
		for _, p := range podsOf(i) {
			least = min(least, key(p))
		}
		if len(podsOf(i)) == 0 {
			return 0
		}
		return least
	}
	truth := func(is bool) int64 {
		if is {
			return 1
		}
		return 0
	}
	allReady := func(i scale.Instance) bool {
		return len(podsOf(i)) >= max(i.Size, 1) && !anyPod(i, func(p *corev1.Pod) bool { return !isReady(p) })
	}
	for key := range strings.FieldsSeq(with) {
		var of func(scale.Instance) int64
		switch key {
		case "assigned":
			of = func(i scale.Instance) int64 {
				return weakest(i, func(p *corev1.Pod) int64 { return truth(p.Spec.NodeName != "") })
			}
		case "phase":
			of = func(i scale.Instance) int64 {
				return weakest(i, func(p *corev1.Pod) int64 {
					return max(0, int64(slices.Index([]corev1.PodPhase{corev1.PodPending, corev1.PodUnknown, corev1.PodRunning}, p.Status.Phase)))
				})
			}
		case "available":
			of = func(i scale.Instance) int64 { return truth(o.available(i)) }
		case "ready":
			of = func(i scale.Instance) int64 { return truth(allReady(i)) }
		case "cost":
			of = func(i scale.Instance) int64 {
				sum := int64(0)
				for _, p := range podsOf(i) {
					if n, err := strconv.ParseInt(p.Annotations[corev1.PodDeletionCost], 10, 32); err == nil && p.Annotations[corev1.PodDeletionCost] != "+5" {
						sum += n
					}
				}
				return sum
			}
		case "rank":
			if order := rank(a).Cmp(rank(b)); order != 0 {
				return order > 0
			}
			continue
		case "since":
			if !allReady(a) || !allReady(b) {
				continue
			}
			of = func(i scale.Instance) int64 {
				return weakest(i, func(p *corev1.Pod) int64 {
					if p.Status.Conditions[0].LastTransitionTime.IsZero() {
						return -1 << 60
					}
					return -p.Status.Conditions[0].LastTransitionTime.Unix()
				})
			}
		case "restarts":
			of = func(i scale.Instance) int64 {
				return weakest(i, func(p *corev1.Pod) int64 { return -int64(p.Status.ContainerStatuses[0].RestartCount) })
			}
		case "created":
			of = func(i scale.Instance) int64 {
				return weakest(i, func(p *corev1.Pod) int64 { return -p.CreationTimestamp.Unix() })
			}
		}
		if of(a) != of(b) {
			return of(a) < of(b)
		}
	}
	return a.Name < b.Name
}

// sorted puts one after the other where it belongs.
func sorted(all []scale.Instance, before func(a, b scale.Instance) bool) []scale.Instance {
	var out []scale.Instance
	for _, i := range all {
		at := 0
		for at < len(out) && before(out[at], i) {
			at++
		}
		out = slices.Insert(out, at, i)
	}
	return out
}

// victims are the candidates in their order. A rank is the product of what the specification sums up as logarithms.
func (o oracle) victims(candidates, others []scale.Instance) []scale.Instance {
	isCandidate := func(i scale.Instance) bool {
		return slices.ContainsFunc(candidates, func(c scale.Instance) bool { return c.Name == i.Name })
	}
	node := func(i scale.Instance) string {
		if len(podsOf(i)) == 0 {
			return ""
		}
		return podsOf(i)[0].Spec.NodeName
	}
	all := slices.Concat(candidates, others)
	after := func(i scale.Instance, alike func(scale.Instance) bool, with string, rank func(scale.Instance) *big.Int) int64 {
		n := int64(0)
		for _, other := range all {
			if other.Name == i.Name || !alike(other) {
				continue
			}
			if isCandidate(i) && !isCandidate(other) || isCandidate(i) == isCandidate(other) && o.before(i, other, with, rank) {
				n++
			}
		}
		return n
	}
	sameNode := func(i scale.Instance) *big.Int {
		if node(i) == "" {
			return big.NewInt(0)
		}
		alike := func(other scale.Instance) bool { return node(other) == node(i) }
		return big.NewInt(after(i, alike, "assigned phase ready cost since restarts created", nil))
	}
	rank := sameNode
	if len(o.in.SpreadKeys) > 0 {
		rank = func(i scale.Instance) *big.Int {
			product := big.NewInt(1)
			for _, key := range o.in.SpreadKeys {
				domains := map[string]bool{}
				for _, other := range all {
					if domain, ok := o.in.NodeLabels[node(other)][key]; ok {
						domains[domain] = true
					}
				}
				mine, ok := o.in.NodeLabels[node(i)][key]
				if !ok {
					continue
				}
				with := "assigned phase ready cost rank since restarts created"
				if key == corev1.LabelHostname {
					with = strings.Replace(with, " rank", "", 1)
				}
				alike := func(other scale.Instance) bool {
					domain, known := o.in.NodeLabels[node(other)][key]
					return known && domain == mine
				}
				product.Mul(product, new(big.Int).Exp(big.NewInt(int64(len(domains)+2)), big.NewInt(1+after(i, alike, with, sameNode)), nil))
			}
			return product
		}
	}
	ranks := map[string]*big.Int{}
	for _, i := range candidates {
		ranks[i.Name] = rank(i)
	}
	return sorted(candidates, func(a, b scale.Instance) bool {
		return o.before(a, b, "assigned phase available ready cost rank since restarts created", func(i scale.Instance) *big.Int { return ranks[i.Name] })
	})
}
