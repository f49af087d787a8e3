package daemonset

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset/internal/placement"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	workloads.Observation

	// set with its defaults.
	set   *v1beta1.DaemonSet
	nodes []*corev1.Node
	// rule of the pod template, updates the nodes whose pods are updated; nil for all.
	rule    *eligible.Rule
	updates labels.Selector
	known   knowledge
}

// knowledge is what is known of a set besides what the API server stores. It may be lost at any time.
type knowledge struct {
	// backoff counts failed pods of a generation.
	backoff    placement.Backoff
	generation int64
	// names are those of pods whose creation was planned and has not succeeded, by node. The next attempt takes the same
	// name, so that a creation whose answer was lost cannot create a second pod.
	names map[string]string
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	set, o, err := workloads.Read(ctx, r.kit, name, invalid)
	if set == nil {
		if err == nil {
			r.memory.Forget(name)
		}
		return nil, err
	}
	s := &snapshot{Observation: *o, set: set}
	if s.Invalid != nil {
		return s, nil //nolint:nilerr // the pass refuses the set
	}
	s.rule, s.updates = eligible.Compile(&set.Spec.Template.Spec, eligible.Options{Daemon: true}), updatesOf(set)
	if s.known = r.memory.Recall(name); s.known.generation != set.Generation {
		s.known.backoff = placement.Backoff{}
	}
	var nodes corev1.NodeList
	if err := r.kit.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	s.nodes = stored.Pointers(nodes.Items)
	err = r.kit.Observe(ctx, &s.Observation, set.Spec.Selector)
	return s, err
}

// pods are those that the set controls.
func (s *snapshot) pods() []*corev1.Pod { return slices.Concat(s.Active, s.Inactive) }
