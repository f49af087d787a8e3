package dashboard

import (
	"cmp"
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	controller "github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/explain"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/pods"
	"github.com/kruisekit/kruisekit/sidecar"
)

// rollout returns the feed of one workload: the object, its pods, its budgets and the warnings about both.
func (c *cluster) rollout(r ref) feed {
	workload, all := newTable("Workload"), newTable("Pod")
	guards, warnings := newTable("PodUnavailableBudget"), newTable("Event")
	run := func(ctx context.Context) {
		var wait sync.WaitGroup
		defer wait.Wait()
		if r.namespace != "" {
			spawn(&wait, func() {
				c.follow(ctx, list{
					kind: kindOfEvents(), namespace: r.namespace, fields: "type=" + corev1.EventTypeWarning,
					row: warningsOf(r.name), into: warnings,
				})
			})
		}
		var was ownerOfPods
		stop := func() {}
		defer func() { stop() }()
		row := func(o *unstructured.Unstructured) any {
			owner, err := ownerOf(o)
			if err != nil {
				return workloadOf(o)
			}
			if !owner.equal(was) {
				stop() // and what has ended writes no row any more
				was, stop = owner, c.pods(ctx, owner, all, guards)
			}
			return workloadOf(o)
		}
		gone := func() {
			stop()
			was = ownerOfPods{}
		}
		c.follow(ctx, list{
			kind: kindNamed(r.kind), namespace: r.namespace, fields: "metadata.name=" + r.name, row: row, gone: gone,
			into: workload,
		})
	}
	return feed{
		key: "rollout " + r.kind + "/" + r.namespace + "/" + r.name, run: run,
		tables: []*table{workload, all, guards, warnings},
	}
}

// pods follows the pods and the budgets of a workload until stop is called, which returns when that has ended.
func (c *cluster) pods(ctx context.Context, owner ownerOfPods, all, guards *table) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	spawn(&wait, func() { c.follow(ctx, owner.list(all)) })
	if owner.kind != kinds.SidecarSet {
		spawn(&wait, func() {
			c.follow(ctx, list{kind: budgets(), namespace: owner.namespace, row: owner.budget, into: guards})
		})
	}
	return func() {
		cancel()
		wait.Wait()
	}
}

// ownerOfPods is what the pods and the budgets of a workload are found by.
type ownerOfPods struct {
	kind, name string
	uid        types.UID
	namespace  string
	selector   string
	// created is the revision of the pods of a Deployment that were not updated in place; empty for the hash of their
	// ReplicaSets.
	created string
	// template are the labels of new pods.
	template map[string]string
}

func ownerOf(o *unstructured.Unstructured) (ownerOfPods, error) {
	selector, err := pods.Selector(o)
	if err != nil {
		return ownerOfPods{}, err
	}
	owner := ownerOfPods{
		kind: o.GetKind(), name: o.GetName(), uid: o.GetUID(), namespace: o.GetNamespace(), selector: selector,
	}
	if o.GetKind() == kinds.SidecarSet {
		owner.namespace, _, _ = unstructured.NestedString(o.Object, "spec", "namespace")
	}
	if p := kinds.Progress(o); p != nil && p.State == controller.StateComplete && o.GetKind() == kinds.Deployment {
		owner.created = p.Revision
	}
	if at := kinds.TemplatePath(o); at != nil {
		owner.template, _, _ = unstructured.NestedStringMap(o.Object, append(at, "metadata", "labels")...)
	}
	return owner, nil
}

func (w ownerOfPods) equal(other ownerOfPods) bool {
	return w.uid == other.uid && w.selector == other.selector && w.namespace == other.namespace &&
		w.created == other.created && maps.Equal(w.template, other.template)
}

// list returns the list of the pods.
func (w ownerOfPods) list(into *table) list {
	return list{
		kind: kindOfPods(), namespace: w.namespace, labels: w.selector, into: into,
		row: func(pod *unstructured.Unstructured) any {
			if !w.has(pod) {
				return nil
			}
			return podOf(pod, w.revisionOf)
		},
	}
}

// has reports whether a pod that the selector selects is one of the workload.
func (w ownerOfPods) has(pod *unstructured.Unstructured) bool {
	switch w.kind {
	case kinds.UnitedDeployment, kinds.Deployment: // whose subsets or ReplicaSets control the pods
		return true
	case kinds.SidecarSet:
		injected, err := sidecar.ReadInjected(pod.GetAnnotations()[kruise.SidecarSetHashKey])
		_, ok := injected[w.name]
		return err == nil && ok
	}
	return metav1.IsControlledBy(pod, &metav1.ObjectMeta{UID: w.uid})
}

// revisionOf returns the revision of a pod: for a SidecarSet the hash of the set that the pod has.
func (w ownerOfPods) revisionOf(pod *corev1.Pod) string {
	if w.kind != kinds.SidecarSet {
		return cmp.Or(pod.Labels[kruise.PodRevisionLabelKey], w.created, explain.RevisionOf(pod))
	}
	injected, err := sidecar.ReadInjected(pod.Annotations[kruise.SidecarSetHashKey])
	if err != nil {
		return ""
	}
	return injected[w.name].Hash
}

// budget returns the row of a budget that guards pods of the workload.
func (w ownerOfPods) budget(o *unstructured.Unstructured) any {
	b, err := kinds.ReadBudget(o)
	if err != nil {
		return nil
	}
	if target := b.Spec.TargetReference; target != nil {
		if target.Kind == w.kind && target.Name == w.name {
			return budgetOf(o)
		}
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(w.template)) {
		return nil
	}
	return budgetOf(o)
}
