package uniteddeployment

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/spread"
)

// podField is the name of the index of pods by their UnitedDeployment and their subset, as their labels have them.
const podField = "kruisekit.dev/united-subset"

// IndexPods lets the reconciler list the pods of a subset.
func IndexPods(ctx context.Context, indexer client.FieldIndexer) error {
	return binding.SharedIndex(indexer.IndexField(ctx, &corev1.Pod{}, podField, func(o client.Object) []string {
		labels := o.GetLabels()
		if owner, ok := ownerIn(labels); ok {
			return []string{subsetKey(owner, labels[kruise.SubSetNameLabelKey])}
		}
		return nil
	}))
}

func subsetKey(owner, subset string) string { return owner + "/" + subset }

// ownerIn is the name of the UnitedDeployment in the labels of a pod: its revisions are named after it.
func ownerIn(labels map[string]string) (string, bool) {
	revision := labels[kruise.ControllerRevisionHashLabelKey]
	end := strings.LastIndexByte(revision, '-')
	if end <= 0 || labels[kruise.SubSetNameLabelKey] == "" {
		return "", false
	}
	return revision[:end], true
}

func ownerOfPod(_ context.Context, o client.Object) []reconcile.Request {
	owner, ok := ownerIn(o.GetLabels())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner}}}
}

// podChanges passes the changes of pods that matter besides the status of their workload: that a pod finds no node, or
// has found one, and whether a reserved pod is ready.
func podChanges() predicate.Predicate {
	type view struct {
		unschedulable, ready bool
		reserved, phase      string
	}
	look := func(o client.Object) view {
		pod, is := o.(*corev1.Pod)
		if _, ok := ownerIn(o.GetLabels()); !is || !ok {
			return view{}
		}
		v := view{unschedulable: spread.IsUnschedulable(pod), reserved: pod.Labels[kruise.UnitedDeploymentReservedPodKey]}
		if v.reserved == "true" {
			v.phase = string(pod.Status.Phase)
			ready := lifecycle.ConditionOf(pod, corev1.PodReady)
			v.ready = ready != nil && ready.Status == corev1.ConditionTrue
		}
		return v
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return look(e.Object).unschedulable },
		DeleteFunc: func(e event.DeleteEvent) bool { return look(e.Object) != view{} },
		UpdateFunc: func(e event.UpdateEvent) bool { return look(e.ObjectOld) != look(e.ObjectNew) },
	}
}

// Lean drops from a workload of a subset what no pass reads. It is the transform of a cache.
func Lean(workload *unstructured.Unstructured) { subsets.Lean(workload) }
