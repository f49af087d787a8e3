package workloadspread

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/pub"
)

const (
	// nearest is how far from a pod other pods of its StatefulSet are looked for.
	nearest = 100
	// mostWitnesses is how many of them are read.
	mostWitnesses = 3
)

// byOrdinal returns the subset of a pod of a StatefulSet: by the rank of its ordinal among those that the set wants.
// OpenKruise takes the ordinal as it is, so that the first and the reserved ordinals move the ranges. The pods of a set
// that OpenKruise has spread stay where their volumes are.
func (d *Allocator) byOrdinal(
	ctx context.Context, ws *subset.Spread, target pub.Target, r Request,
) (*subset.Subset, error) {
	_, ordinal, is := ordinals.Split(r.Pod.Name)
	if !is {
		return nil, nil
	}
	window, err := d.lookups.Targets.window(ctx, replicas.Workload{Namespace: ws.Namespace, Target: target})
	if err != nil {
		return nil, err
	}
	limits, err := d.lookups.Targets.limits(ctx, ws)
	if err != nil {
		return nil, err
	}
	v := view{spread: ws, limits: limits, window: window}
	rank := v.rank(ordinal)
	if v.differs(ordinal) {
		asItIs, err := d.shown(ctx, v, target, r)
		if err != nil {
			return nil, err
		}
		if asItIs {
			rank = ordinal
		}
	}
	return subset.ByOrdinal(ws, limits, rank), nil
}

// view is what the ranges of ordinals depend on.
type view struct {
	spread *subset.Spread
	limits []int32
	window ordinals.Window
}

// rank returns the rank of an ordinal, also of one beyond the replicas.
func (v view) rank(ordinal int32) int32 {
	w := v.window
	w.Replicas = 1 << 30
	rank, _ := w.Rank(ordinal)
	return rank
}

// ranges returns the subsets of an ordinal by its rank, and as it is.
func (v view) ranges(ordinal int32) (byRank, asItIs string) {
	return subset.Range(v.spread, v.limits, v.rank(ordinal)), subset.Range(v.spread, v.limits, ordinal)
}

func (v view) differs(ordinal int32) bool {
	byRank, asItIs := v.ranges(ordinal)
	return byRank != asItIs
}

// witnesses returns the nearest ordinals whose pods show by which of the two rules they were spread.
func (v view) witnesses(ordinal int32) []int32 {
	var all []int32
	for distance := int32(1); distance <= nearest; distance++ {
		for _, other := range []int32{ordinal - distance, ordinal + distance} {
			if !v.window.Contains(other) || !v.differs(other) {
				continue
			}
			if all = append(all, other); len(all) == mostWitnesses {
				return all
			}
		}
	}
	return all
}

// shown reports whether another pod of a StatefulSet has the subset of its ordinal as it is, rather than that of its
// rank. It reads few pods, live, and only where the two differ.
func (d *Allocator) shown(ctx context.Context, v view, target pub.Target, r Request) (bool, error) {
	set, ordinal, _ := ordinals.Split(r.Pod.Name)
	for _, other := range v.witnesses(ordinal) {
		name := types.NamespacedName{Namespace: v.spread.Namespace, Name: ordinals.Name(set, other)}
		found, err := stored.Metadata(ctx, d.lookups.Live, corev1.SchemeGroupVersion.WithKind("Pod"), name)
		if err != nil {
			return false, fmt.Errorf("read pod %s: %w", name.Name, err)
		}
		if found == nil {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(found)
		m, is := subset.MatchOf(&corev1.Pod{ObjectMeta: found.ObjectMeta})
		if !is || m.Name != v.spread.Name || owner == nil || replicas.Of(name.Namespace, owner).Target != target {
			continue
		}
		switch byRank, asItIs := v.ranges(other); m.Subset {
		case asItIs:
			return true, nil
		case byRank:
			return false, nil
		}
	}
	return false, nil
}

// window returns the ordinals that a StatefulSet wants. What cannot be read has no first and no reserved ordinals.
func (t *Targets) window(ctx context.Context, of replicas.Workload) (ordinals.Window, error) {
	raw, err := t.live(ctx, of)
	if err != nil || raw == nil {
		return ordinals.Window{}, err
	}
	var set struct {
		Spec struct {
			Replicas *int32 `json:"replicas"`
			Ordinals *struct {
				Start int32 `json:"start"`
			} `json:"ordinals"`
			ReserveOrdinals []intstr.IntOrString `json:"reserveOrdinals"`
		} `json:"spec"`
	}
	data, err := json.Marshal(raw.Object)
	if err != nil {
		return ordinals.Window{}, fmt.Errorf("encode %s %s: %w", of.Kind, of.Name, err)
	}
	if json.Unmarshal(data, &set) != nil {
		return ordinals.Window{}, nil //nolint:nilerr // what cannot be read changes no rank
	}
	w := ordinals.Window{Replicas: ptr.Deref(set.Spec.Replicas, 1)}
	if set.Spec.Ordinals != nil {
		w.Start = set.Spec.Ordinals.Start
	}
	if w.Reserved, err = ordinals.Parse(set.Spec.ReserveOrdinals); err != nil {
		w.Reserved = ordinals.Set{}
	}
	return w, nil
}
