package scale_test

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// The oracle plans by the bare rules, one instance at a time, with no thought of speed.
type oracle struct{ in scale.Input }

func podsOf(i scale.Instance) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(i.Pods), func(p *corev1.Pod) bool { return p == nil })
}

func anyPod(i scale.Instance, is func(*corev1.Pod) bool) bool {
	return slices.ContainsFunc(podsOf(i), is)
}

func inState(state kruise.LifecycleState) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Labels[kruise.LifecycleStateKey] == string(state) }
}

func leaving(i scale.Instance) bool { return anyPod(i, inState(kruise.LifecycleStatePreparingDelete)) }

func preparing(i scale.Instance) bool {
	return anyPod(i, inState(kruise.LifecycleStatePreparingUpdate))
}

func isReady(p *corev1.Pod) bool {
	return p.Status.Conditions[0].Type == corev1.PodReady && p.Status.Conditions[0].Status == corev1.ConditionTrue
}

func (o oracle) fit(i scale.Instance, seconds int32) bool {
	if i.Terminating || len(podsOf(i)) < i.Size || len(podsOf(i)) == 0 {
		return false
	}
	return !anyPod(i, func(p *corev1.Pod) bool {
		state := p.Labels[kruise.LifecycleStateKey]
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
			c.PreparingDelete++
		case i.MarkedForDeletion:
			c.MarkedForDeletion++
		case o.available(i):
			c.Available++
		default:
			c.Unavailable++
		}
	}
	return c
}

// weakest is the least that a key is among the pods of an instance.
func weakest(i scale.Instance, key func(*corev1.Pod) int64) int64 {
	if len(podsOf(i)) == 0 {
		return 0
	}
	least := int64(1) << 62
	for _, p := range podsOf(i) {
		least = min(least, key(p))
	}
	return least
}

func truth(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func allReady(i scale.Instance) bool {
	return len(podsOf(i)) >= max(i.Size, 1) && !anyPod(i, func(p *corev1.Pod) bool { return !isReady(p) })
}

func cost(i scale.Instance) int64 {
	sum := int64(0)
	for _, p := range podsOf(i) {
		text := p.Annotations[corev1.PodDeletionCost]
		if n, err := strconv.ParseInt(text, 10, 32); err == nil && text != "+5" {
			sum += n
		}
	}
	return sum
}

// key is what is compared, the smaller goes first.
func (o oracle) key(name string, i scale.Instance) int64 {
	phases := []corev1.PodPhase{corev1.PodPending, corev1.PodUnknown, corev1.PodRunning}
	switch name {
	case "assigned":
		return weakest(i, func(p *corev1.Pod) int64 { return truth(p.Spec.NodeName != "") })
	case "phase":
		return weakest(i, func(p *corev1.Pod) int64 { return max(0, int64(slices.Index(phases, p.Status.Phase))) })
	case "available":
		return truth(o.available(i))
	case "ready":
		return truth(allReady(i))
	case "cost":
		return cost(i)
	case "since":
		return weakest(i, func(p *corev1.Pod) int64 {
			if since := p.Status.Conditions[0].LastTransitionTime; !since.IsZero() {
				return -since.Unix()
			}
			return -1 << 60
		})
	case "restarts":
		return weakest(i, func(p *corev1.Pod) int64 { return -int64(p.Status.ContainerStatuses[0].RestartCount) })
	}
	return weakest(i, func(p *corev1.Pod) int64 { return -p.CreationTimestamp.Unix() })
}

// before reports whether a is to go before b, by the keys that have a name.
func (o oracle) before(a, b scale.Instance, with string, rank func(scale.Instance) *big.Int) bool {
	for name := range strings.FieldsSeq(with) {
		switch {
		case name == "rank":
			if order := rank(a).Cmp(rank(b)); order != 0 {
				return order > 0
			}
		case name == "since" && (!allReady(a) || !allReady(b)):
		case o.key(name, a) != o.key(name, b):
			return o.key(name, a) < o.key(name, b)
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

// ranking ranks by what the plan sums up as logarithms; here it is the product of what they are of.
type ranking struct {
	oracle
	candidates, all []scale.Instance
}

func nodeOf(i scale.Instance) string {
	if len(podsOf(i)) == 0 {
		return ""
	}
	return podsOf(i)[0].Spec.NodeName
}

func has(all []scale.Instance, name string) bool {
	return slices.ContainsFunc(all, func(i scale.Instance) bool { return i.Name == name })
}

// after counts those alike that go after an instance; all that are no candidates go after the candidates.
func (o ranking) after(i scale.Instance, alike func(scale.Instance) bool, with string) int64 {
	n, mine := int64(0), has(o.candidates, i.Name)
	for _, other := range o.all {
		its := has(o.candidates, other.Name)
		switch {
		case other.Name == i.Name || !alike(other):
		case mine && !its, mine == its && o.before(i, other, with, o.sameNode):
			n++
		}
	}
	return n
}

func (o ranking) sameNode(i scale.Instance) *big.Int {
	if nodeOf(i) == "" {
		return big.NewInt(0)
	}
	alike := func(other scale.Instance) bool { return nodeOf(other) == nodeOf(i) }
	return big.NewInt(o.after(i, alike, "assigned phase ready cost since restarts created"))
}

func (o ranking) spread(i scale.Instance) *big.Int {
	product := big.NewInt(1)
	for _, key := range o.in.SpreadKeys {
		domains := map[string]bool{}
		for _, other := range o.all {
			if domain, ok := o.in.NodeLabels[nodeOf(other)][key]; ok {
				domains[domain] = true
			}
		}
		mine, ok := o.in.NodeLabels[nodeOf(i)][key]
		if !ok {
			continue
		}
		with := "assigned phase ready cost rank since restarts created"
		if key == corev1.LabelHostname {
			with = strings.Replace(with, " rank", "", 1)
		}
		left := 1 + o.after(i, func(other scale.Instance) bool {
			domain, known := o.in.NodeLabels[nodeOf(other)][key]
			return known && domain == mine
		}, with)
		product.Mul(product, new(big.Int).Exp(big.NewInt(int64(len(domains)+2)), big.NewInt(left), nil))
	}
	return product
}

// victims are the candidates in their order.
func (o oracle) victims(candidates, others []scale.Instance) []scale.Instance {
	r := ranking{o, candidates, slices.Concat(candidates, others)}
	ranks := map[string]*big.Int{}
	for _, i := range candidates {
		ranks[i.Name] = r.sameNode(i)
		if len(o.in.SpreadKeys) > 0 {
			ranks[i.Name] = r.spread(i)
		}
	}
	return sorted(candidates, func(a, b scale.Instance) bool {
		return o.before(a, b, "assigned phase available ready cost rank since restarts created",
			func(i scale.Instance) *big.Int { return ranks[i.Name] })
	})
}
