package workloadspread

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/pub"
)

// Own returns the pods of a target that no other WorkloadSpread takes, by the rule of Allocator.Admit: the nearest
// target in the chain of controllers of a pod, then the first WorkloadSpread by name. It reads each controller once,
// and from the cache alone. Where the cache does not have the whole chain, a pod stays with the WorkloadSpread that
// admission or an earlier pass gave the pod to.
func (t *Targets) Own(ctx context.Context, x *Index, ws *subset.Spread, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	target, is := TargetOf(ws)
	if !is || !x.others(ws) {
		return pods, nil
	}
	if err := t.watch(); err != nil {
		return nil, err
	}
	chains := map[types.UID]chain{}
	var own []*corev1.Pod
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil {
			continue
		}
		above, known := chains[owner.UID]
		if !known {
			var err error
			if above, err = t.chain(ctx, x, ws, replicas.Of(pod.Namespace, owner)); err != nil {
				return nil, err
			}
			chains[owner.UID] = above
		}
		taken := slices.ContainsFunc(above.rivals, func(rival *subset.Spread) bool {
			return subset.Admits(rival, pod.Labels)
		})
		// A WorkloadSpread that admits no pod takes none from the one that did.
		whole := above.whole && subset.Admits(ws, pod.Labels)
		if !taken && (whole || !x.given(pod, ws, target)) {
			own = append(own, pod)
		}
	}
	return own, nil
}

// chain is what is known of the controllers from that of a pod up to a target.
type chain struct {
	// rivals are the WorkloadSpreads that come before the one of the target.
	rivals []*subset.Spread
	// whole reports that the cache has all controllers below the target.
	whole bool
}

func (t *Targets) chain(ctx context.Context, x *Index, ws *subset.Spread, of replicas.Workload) (chain, error) {
	target, _ := TargetOf(ws)
	var c chain
	for range maxChain {
		if of.Target == target {
			c.whole = true
			break
		}
		c.rivals = append(c.rivals, x.Of(ws.Namespace, of.Target)...)
		above, is, err := t.Finder.Above(ctx, of)
		if err != nil {
			return c, err
		}
		if !is {
			break
		}
		of = above
	}
	for _, other := range x.Of(ws.Namespace, target) {
		if other.Name < ws.Name {
			c.rivals = append(c.rivals, other)
		}
	}
	return c, nil
}

// given reports whether the annotation of a pod names another WorkloadSpread that may have the pod: its target is of a
// further kind, whose controllers the cache does not have, or the first WorkloadSpread admits no pod.
func (x *Index) given(pod *corev1.Pod, ws *subset.Spread, target pub.Target) bool {
	m, is := subset.MatchOf(pod)
	if !is || m.Name == ws.Name {
		return false
	}
	other := x.Named(types.NamespacedName{Namespace: ws.Namespace, Name: m.Name})
	if other == nil || other.DeletionTimestamp != nil || !subset.Admits(other, pod.Labels) {
		return false
	}
	of, is := TargetOf(other)
	if !subset.Admits(ws, pod.Labels) {
		return is
	}
	return is && of != target && !BuiltIn(schema.GroupKind{Group: of.Group, Kind: of.Kind})
}

// others reports whether the namespace of a WorkloadSpread has another one.
func (x *Index) others(ws *subset.Spread) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	in := x.places[ws.Namespace]
	return in != nil && (len(in.byName) > 1 || in.byName[ws.Name] == nil)
}
