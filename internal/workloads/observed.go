package workloads

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
)

// Observed are the dependents of one workload.
type Observed struct {
	Pods
	// Claims that are not terminating, by name.
	Claims []*corev1.PersistentVolumeClaim
	// Revisions, oldest first.
	Revisions []*appsv1.ControllerRevision
	// Jobs that pull images ahead and are not terminating.
	Jobs []*metav1.PartialObjectMetadata
	// RecheckAfter is when to look again where a cache lacks what was created; zero where none does.
	RecheckAfter time.Duration
}

// Pods are the pods that a workload controls.
type Pods struct {
	// Active pods are selected, and neither finished nor terminating. They are sorted by name.
	Active []*corev1.Pod
	// Inactive pods are finished or terminating.
	Inactive []*corev1.Pod
	// Unselected pods are active, and the selector does not match them any more.
	Unselected []*corev1.Pod
}

// AllPods returns the pods in the order of the fields.
func (p Pods) AllPods() []*corev1.Pod { return slices.Concat(p.Active, p.Inactive, p.Unselected) }

// Add sorts pods in.
func (p *Pods) Add(selector labels.Selector, pods ...*corev1.Pod) {
	p.Active = slices.Grow(p.Active, len(pods))
	for _, pod := range pods {
		switch {
		case pod.DeletionTimestamp != nil || workload.IsFinished(pod):
			p.Inactive = append(p.Inactive, pod)
		case !selector.Matches(labels.Set(pod.Labels)):
			p.Unselected = append(p.Unselected, pod)
		default:
			p.Active = append(p.Active, pod)
		}
	}
	slices.SortFunc(p.Active, byName[*corev1.Pod])
}

func byName[T client.Object](a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) }

// Observe reads the dependents of a workload. Where the workload has its pods through other objects, as a Deployment
// through ReplicaSets, give all of these.
func (d *Dependents) Observe(
	ctx context.Context, owner client.Object, selector labels.Selector, through ...client.Object,
) (*Observed, error) {
	o := &observation{owner: owner}
	if len(through) == 0 {
		through = []client.Object{owner}
	}
	var items []corev1.Pod
	for _, parent := range through {
		var pods corev1.PodList
		if err := d.list(ctx, parent, &pods); err != nil {
			return nil, err
		}
		items = append(items, pods.Items...)
	}
	all, err := overlay(ctx, o, d.pods, items)
	if err != nil {
		return nil, err
	}
	o.Add(selector, ownedBy(all, through...)...)
	if d.Successors {
		d.observeDeleting(o)
	}
	if err := d.observeClaims(ctx, o); err != nil {
		return nil, err
	}
	var revisions appsv1.ControllerRevisionList
	if err := d.list(ctx, owner, &revisions); err != nil {
		return nil, err
	}
	if o.Revisions, err = controlled(ctx, o, d.revisions, revisions.Items); err != nil {
		return nil, err
	}
	o.Revisions = revision.Complete(o.Revisions)
	revision.Sort(o.Revisions)
	return &o.Observed, d.observeJobs(ctx, o)
}

// observeDeleting adds the pods that were deleted, and may still terminate.
func (d *Dependents) observeDeleting(o *observation) {
	pods, recheckAfter := d.pods.Deleting(client.ObjectKeyFromObject(o.owner))
	o.RecheckAfter = passes.Sooner(o.RecheckAfter, recheckAfter)
	for _, pod := range pods {
		if owned.Controls(o.owner, pod) {
			terminating := *pod
			terminating.DeletionTimestamp = cmp.Or(pod.DeletionTimestamp, &metav1.Time{Time: d.api.Now()})
			o.Inactive = append(o.Inactive, &terminating)
		}
	}
}

func (d *Dependents) observeClaims(ctx context.Context, o *observation) error {
	if !d.Claims {
		return nil
	}
	var list corev1.PersistentVolumeClaimList
	if err := d.list(ctx, o.owner, &list); err != nil {
		return err
	}
	all, err := controlled(ctx, o, d.claims, list.Items)
	o.Claims = slices.DeleteFunc(all, isTerminating[*corev1.PersistentVolumeClaim])
	slices.SortFunc(o.Claims, byName[*corev1.PersistentVolumeClaim])
	return err
}

func (d *Dependents) observeJobs(ctx context.Context, o *observation) error {
	if !d.PullJobs {
		return nil
	}
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(pullJobKind().GroupVersion().WithKind(pullJobKind().Kind + "List"))
	if err := d.list(ctx, o.owner, &list); err != nil {
		return err
	}
	all, err := controlled(ctx, o, d.jobs, list.Items)
	o.Jobs = slices.DeleteFunc(all, isTerminating[*metav1.PartialObjectMetadata])
	return err
}

func isTerminating[T client.Object](object T) bool { return object.GetDeletionTimestamp() != nil }

// observation is an observation in progress.
type observation struct {
	Observed

	owner client.Object
}

// list reads the objects of a kind that refer to another one as their owner. They are the cache's.
func (d *Dependents) list(ctx context.Context, owner client.Object, into client.ObjectList) error {
	if err := d.api.Client.List(ctx, into,
		append(owned.In(owner.GetNamespace(), owner.GetUID()), client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("read %T: %w", into, err)
	}
	return nil
}

// controlled returns those of some objects that a workload controls, as they are after the own writes.
func controlled[T any, P interface {
	*T
	client.Object
}](ctx context.Context, o *observation, writes *ledger.Ledger[P], items []T) ([]P, error) {
	all, err := overlay(ctx, o, writes, items)
	return ownedBy(all, o.owner), err
}

// overlay returns objects as they are after the own writes.
func overlay[T any, P interface {
	*T
	client.Object
}](ctx context.Context, o *observation, writes *ledger.Ledger[P], items []T) ([]P, error) {
	cached := make([]P, len(items))
	for i := range items {
		cached[i] = &items[i]
	}
	all, recheckAfter, err := writes.Overlay(ctx, client.ObjectKeyFromObject(o.owner), cached)
	o.RecheckAfter = passes.Sooner(o.RecheckAfter, recheckAfter)
	return all, err
}

// ownedBy returns the objects that one of some owners controls.
func ownedBy[P client.Object](all []P, owners ...client.Object) []P {
	return slices.DeleteFunc(all, func(object P) bool {
		return !slices.ContainsFunc(owners, func(owner client.Object) bool { return owned.Controls(owner, object) })
	})
}

// Missing reads the pods of a workload past the cache, and returns those that were not observed. An earlier process, or
// an earlier leader, may have created them a moment ago, and no ledger knows. Call it once for a workload, before the
// first creation of a pod or deletion of a claim without a pod.
func (d *Dependents) Missing(
	ctx context.Context, owner client.Object, selector labels.Selector, observed Pods,
) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := d.api.Live.List(ctx, &list, client.InNamespace(owner.GetNamespace()),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list pods past the cache: %w", err)
	}
	known := map[types.UID]bool{}
	for _, pod := range observed.AllPods() {
		known[pod.UID] = true
	}
	var missing []*corev1.Pod
	for _, pod := range stored.Pointers(list.Items) {
		if !known[pod.UID] && owned.Controls(owner, pod) {
			d.pods.Created(client.ObjectKeyFromObject(owner), pod)
			missing = append(missing, pod)
		}
	}
	return missing, nil
}

// NodeLabels reads the labels of the nodes that pods run on, by the name of the node. A node that does not exist has
// none.
func (d *Dependents) NodeLabels(ctx context.Context, pods []*corev1.Pod) (map[string]map[string]string, error) {
	nodes := map[string]map[string]string{}
	for _, pod := range pods {
		name := pod.Spec.NodeName
		if _, known := nodes[name]; known || name == "" {
			continue
		}
		var node corev1.Node
		switch err := d.api.Client.Get(ctx, types.NamespacedName{Name: name}, &node); {
		case apierrors.IsNotFound(err):
			nodes[name] = nil
		case err != nil:
			return nil, fmt.Errorf("get node %s: %w", name, err)
		default:
			nodes[name] = node.Labels
		}
	}
	return nodes, nil
}

// Policy is what workloads change in place and how. Nil is for a daemon that restarts containers for their environment,
// and no resize. Without the daemon, environment variables from labels and annotations stay as they are when these
// change.
func Policy(installed *inplace.Installation) inplace.Policy {
	has := ptr.Deref(installed, inplace.Installation{EnvDaemon: true})
	p := has.Policy()
	if !has.EnvDaemon {
		p.Env = inplace.EnvIgnore
	}
	return p
}

// Judge returns the first of the faults for which the webhook rejects a workload. A fault within unusable paths means
// that nothing is done until the spec changes. Another one is only reported: it has a safe reading, as takeovers find
// stored values that the reference accepts. So has a fault within safe paths, which may lie within unusable ones.
func Judge(faults field.ErrorList, unusable, safe []string) (invalid, reported error) {
	for _, fault := range faults {
		at := func(path string) bool { return strings.HasPrefix(fault.Field, path) }
		switch {
		case at("spec.template.metadata"): // the plan compares the selector with the labels of the pods, which have more
		case slices.ContainsFunc(unusable, at) && !slices.ContainsFunc(safe, at):
			return failure.Brief(fault), nil
		case reported == nil:
			reported = failure.Brief(fault)
		}
	}
	return nil, reported
}
