package workloadspread

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// Own returns the pods of a target that no other WorkloadSpread has, by the rule of Allocator.Admit. It reads each
// controller once, and from the cache alone. Where the controllers in the cache lead to no WorkloadSpread that admits a
// pod, the pod stays with the one that its annotation names.
func (t *Targets) Own(ctx context.Context, x *Index, ws *subset.Spread, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	if len(x.All(ws.Namespace)) < 2 {
		return pods, nil
	}
	if err := t.watch(); err != nil {
		return nil, err
	}
	chains := map[types.UID][]*subset.Spread{}
	var own []*corev1.Pod
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil {
			continue
		}
		candidates, known := chains[owner.UID]
		if !known {
			var err error
			if candidates, err = t.candidates(ctx, x, replicas.Of(pod.Namespace, owner)); err != nil {
				return nil, err
			}
			chains[owner.UID] = candidates
		}
		holder := first(candidates, pod.Labels)
		if holder == nil {
			holder = x.named(pod)
		}
		if holder == nil || holder.Name == ws.Name {
			own = append(own, pod)
		}
	}
	return own, nil
}

// candidates returns the WorkloadSpreads of a controller and of those above it that the cache has, the nearest first.
func (t *Targets) candidates(ctx context.Context, x *Index, of replicas.Workload) ([]*subset.Spread, error) {
	var all []*subset.Spread
	for range maxChain {
		all = append(all, x.Of(of.Namespace, of.Target)...)
		above, ok, err := t.Finder.Above(ctx, of)
		if err != nil || !ok {
			return all, err
		}
		of = above
	}
	return all, nil
}

// named returns the WorkloadSpread that the annotation of a pod names, if its target may be above what the cache has: a
// further kind.
func (x *Index) named(pod *corev1.Pod) *subset.Spread {
	m, _ := subset.MatchOf(pod)
	ws := x.Named(types.NamespacedName{Namespace: pod.Namespace, Name: m.Name})
	if ws == nil || ws.DeletionTimestamp != nil || !subset.Admits(ws, pod.Labels) {
		return nil
	}
	if kind := KindOf(ws); kind.Empty() || BuiltIn(kind) {
		return nil
	}
	return ws
}
