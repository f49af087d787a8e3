package native

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/native"
)

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	workloads.Observed

	set     client.Object
	kind    native.Kind
	now     time.Time
	repeats workload.Repeats
	// rollout is what the set asks for, and wanted whether it asks. implied means that its namespace asks for it. faults
	// are the errors in the annotation.
	rollout native.Rollout
	wanted  bool
	implied bool
	faults  field.ErrorList
	// reported is the last status; nil for none.
	reported *Progress
	// replicaSets are those of a Deployment, and unobserved is since when its hold waits for the built-in controller.
	replicaSets []*appsv1.ReplicaSet
	unobserved  time.Time
}

func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.set) }

// pods are those that the set controls, whether its selector matches them or not.
func (s *snapshot) pods() []*corev1.Pod { return slices.Concat(s.Active, s.Inactive, s.Unselected) }

// observe makes the snapshot; nil where there is nothing to do.
func (l *loop) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	set := l.empty()
	// Most sets ask for nothing: their events cost no copy.
	if err := l.Client.Get(ctx, name, set, client.UnsafeDisableDeepCopy); err != nil {
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("get %s: %w", l.kind, err)
		}
		l.Forget(name)
		l.repeats.Forget(name)
		l.emitted.Forget(name)
		l.confirmed.Forget(name)
		l.sets.Forget(name)
		l.unobserved.Forget(name)
		l.templates.Forget(name)
		return nil, nil
	}
	s := &snapshot{set: set, kind: l.kind, now: l.Now(), repeats: l.repeats.Recall(name)}
	s.unobserved = l.unobserved.Recall(name)
	namespace, err := stored.Metadata(ctx, l.Client, namespaceKind(), types.NamespacedName{Name: name.Namespace})
	if err != nil {
		return nil, err
	}
	s.readAnnotations(namespace)
	if set.GetDeletionTimestamp() != nil || !l.options.acts(s) {
		return nil, nil
	}
	if _, held := set.GetAnnotations()[native.HoldKey]; held && !s.wanted {
		// The pass will release the set to the built-in controller, which recreates pods. The cache may not show yet that
		// the namespace asks for rollouts.
		namespace, err = stored.Metadata(ctx, l.Live, namespaceKind(), types.NamespacedName{Name: name.Namespace})
		if err != nil {
			return nil, err
		}
		s.readAnnotations(namespace)
		if !l.options.acts(s) {
			return nil, nil
		}
	}
	through, after, err := l.observeSets(ctx, s)
	if err != nil {
		return nil, err
	}
	observed, err := l.Observe(ctx, set, labels.Everything(), through...)
	if err != nil {
		return nil, err
	}
	s.Observed = *observed
	s.RecheckAfter = passes.Sooner(s.RecheckAfter, after)
	return s, nil
}

func namespaceKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Namespace") }

// observeSets reads the ReplicaSets through which a Deployment has its pods.
func (l *loop) observeSets(ctx context.Context, s *snapshot) (all []client.Object, after time.Duration, err error) {
	if l.kind != native.KindDeployment {
		return nil, 0, nil
	}
	var list appsv1.ReplicaSetList
	if err := l.Client.List(ctx, &list, append(owned.In(s.set.GetNamespace(), s.set.GetUID()),
		client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, 0, fmt.Errorf("list ReplicaSets: %w", err)
	}
	s.replicaSets, after, err = l.sets.Overlay(ctx, s.key(), stored.Pointers(list.Items))
	if err == nil {
		s.replicaSets, err = l.complete(ctx, s.key(), s.replicaSets)
	}
	for _, set := range s.replicaSets {
		all = append(all, set)
	}
	return append(all, s.set), after, err
}

// kept is the template of a ReplicaSet of some generation.
type kept struct {
	generation int64
	template   corev1.PodTemplateSpec
}

// complete returns ReplicaSets with their templates, which a lean cache drops where a ReplicaSet has no pods. It reads
// each once, live.
func (l *loop) complete(
	ctx context.Context, deployment types.NamespacedName, sets []*appsv1.ReplicaSet,
) ([]*appsv1.ReplicaSet, error) {
	before, after := l.templates.Recall(deployment), map[types.UID]kept{}
	whole := make([]*appsv1.ReplicaSet, 0, len(sets))
	for _, set := range sets {
		if len(set.Spec.Template.Spec.Containers) > 0 {
			whole = append(whole, set)
			continue
		}
		known, ok := before[set.UID]
		if !ok || known.generation != set.Generation {
			live, err := stored.Find[appsv1.ReplicaSet](ctx, l.Live, client.ObjectKeyFromObject(set))
			if err != nil {
				return nil, err
			}
			if live == nil || live.UID != set.UID {
				continue // the cache lags behind its deletion
			}
			known = kept{live.Generation, live.Spec.Template}
		}
		after[set.UID] = known
		copied := *set
		copied.Spec.Template = known.template
		whole = append(whole, &copied)
	}
	l.templates.Note(deployment, func(all *map[types.UID]kept) { *all = after })
	return whole, nil
}
