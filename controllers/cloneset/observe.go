package cloneset

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/dependents"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/workload"
)

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	dependents.Observed

	// set with its defaults.
	set      *v1beta1.CloneSet
	selector labels.Selector
	// invalid is why nothing can be done with the spec, reported what of the spec is invalid and has a safe reading.
	invalid, reported error
	now               time.Time
	// nodes by name, where the template spreads pods.
	nodes map[string]map[string]string
	known knowledge
	// taken is why a claim name of an id cannot be used, by the id.
	taken map[string]string
}

// knowledge is what is known of a set beside what the API server stores. It may be lost at any time.
type knowledge struct {
	// verified is the UID of the set whose pods were read past the cache since the process started.
	verified types.UID
	// pending are the ids of pods whose creation was planned, and has not succeeded, sorted. The next attempt takes the same
	// ids, so that their claims are used, and so that the API server's refusal has the same text.
	pending []string
	// outdated is how many passes in a row were decided upon older objects.
	outdated int
	// repeats are the recent writes of pods.
	repeats workload.Repeats
	wait    conditions.Wait
	// failures are the messages of the conditions of failures in the last status that was written, by their type. The cache may
	// still show the status from before.
	failures map[string]string
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	set, malformed, err := stored.Read[v1beta1.CloneSet](ctx, r.api.Cached, gvk(), name)
	if apierrors.IsNotFound(err) {
		r.forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &snapshot{set: set, now: r.api.Now(), invalid: malformed, known: r.memory.Recall(name)}
	if malformed != nil {
		return s, nil //nolint:nilerr // the pass refuses the set
	}
	s.set.Default()
	if s.invalid, s.reported = invalid(set); s.invalid != nil {
		return s, nil //nolint:nilerr // the pass refuses the set
	}
	if s.selector, err = metav1.LabelSelectorAsSelector(s.set.Spec.Selector); err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	selects := s.selector
	if set.DeletionTimestamp != nil {
		selects = labels.Everything() // no pod of a set that is deleted is released
	}
	observed, err := r.dependents.Observe(ctx, set, selects)
	if err != nil {
		return nil, err
	}
	s.Observed = *observed
	if len(set.Spec.Template.Spec.TopologySpreadConstraints) > 0 && int32(len(s.Active)) > *set.Spec.Replicas {
		if s.nodes, err = r.dependents.NodeLabels(ctx, s.Active); err != nil {
			return nil, err
		}
	}
	ids := s.known.pending
	if set.Spec.ScaleStrategy.EnablePVCReuse {
		ids = slices.Concat(ids, s.pool(s.Claims).Idle(s.AllPods()))
	}
	s.taken, err = s.pool(s.Claims).Taken(ctx, r.api.Client, ids)
	return s, err
}

// forget drops what is known of a set that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.dependents.Forget(name)
	r.memory.Forget(name)
	r.emitted.Forget(name)
	r.limited.Forget(name)
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.set) }

// verified reports whether the pods were read past the cache since the process started.
func (s *snapshot) verified() bool { return s.known.verified == s.set.UID }

// verifyPods reads the pods of the set past the cache, and adds those that the cache lacks. It comes before the first pass that creates
// pods, or deletes claims without a pod.
func (r *Reconciler) verifyPods(ctx context.Context, s *snapshot) error {
	missing, err := r.dependents.Missing(ctx, s.set, s.selector, s.Pods)
	if err != nil {
		return err
	}
	s.Add(s.selector, missing...)
	s.known.verified = s.set.UID
	r.memory.Note(s.key(), func(k *knowledge) { k.verified = s.set.UID })
	return nil
}
