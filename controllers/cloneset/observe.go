package cloneset

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	workloads.Observation

	// set with its defaults.
	set *v1beta1.CloneSet
	// nodes by name, where the template spreads pods.
	nodes map[string]map[string]string
	known knowledge
	// taken is why a claim name of an id cannot be used, by the id.
	taken map[string]string
	// handedOver are the claims that go with a pod that is active, by the UID of the pod: an earlier pass handed them
	// over, and could not delete the pod.
	handedOver map[types.UID][]*corev1.PersistentVolumeClaim
}

// knowledge is what is known of a set beside what the API server stores. It may be lost at any time.
type knowledge struct {
	// pending are the ids of pods whose creation was planned, and has not succeeded, sorted. The next attempt takes the
	// same ids, so that their claims are used, and so that the API server's refusal has the same text.
	pending []string
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	set, o, err := workloads.Read(ctx, r.kit, name, invalid)
	if set == nil {
		if err == nil {
			r.forget(name)
		}
		return nil, err
	}
	if o.Invalid != nil {
		return &snapshot{Observation: *o, set: set}, nil //nolint:nilerr // the pass refuses the set
	}
	if err := r.kit.Observe(ctx, o, set.Spec.Selector); err != nil {
		return nil, err
	}
	s := &snapshot{Observation: *o, set: set, known: r.memory.Recall(name)}
	if len(set.Spec.Template.Spec.TopologySpreadConstraints) > 0 && int32(len(s.Active)) > *set.Spec.Replicas {
		if s.nodes, err = r.kit.NodeLabels(ctx, s.Active); err != nil {
			return nil, err
		}
	}
	if err := r.observeHandedOver(ctx, s); err != nil {
		return nil, err
	}
	ids := s.known.pending
	if set.Spec.ScaleStrategy.EnablePVCReuse {
		ids = slices.Concat(ids, s.pool(s.Claims).Idle(s.AllPods()))
	}
	s.taken, err = s.pool(s.Claims).Taken(ctx, r.kit.Client, ids)
	return s, err
}

// observeHandedOver reads the claims of active pods that the set does not control.
func (r *Reconciler) observeHandedOver(ctx context.Context, s *snapshot) error {
	s.handedOver = map[types.UID][]*corev1.PersistentVolumeClaim{}
	for pod, names := range s.foreignClaims() {
		for _, name := range names {
			claim, err := stored.Find[corev1.PersistentVolumeClaim](ctx, r.kit.Client, types.NamespacedName{
				Namespace: pod.Namespace, Name: name,
			})
			if err != nil {
				return err
			}
			if claim != nil && claim.DeletionTimestamp == nil && owned.Controls(pod, claim) {
				s.handedOver[pod.UID] = append(s.handedOver[pod.UID], claim)
			}
		}
	}
	return nil
}

// forget drops what is known of a set that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.memory.Forget(name)
	r.limited.Forget(name)
}
