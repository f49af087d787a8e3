package forecast

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment"
	"github.com/kruisekit/kruisekit/note"
)

// unitedDeployments are forecast with the workloads of their subsets. Pods of Deployments and of StatefulSets of
// Kubernetes are left out.
func unitedDeployments() *kind {
	return &kind{
		name: "UnitedDeployment",
		owns: func(united types.NamespacedName, pod *corev1.Pod) bool {
			return pod.Namespace == united.Namespace && pod.Labels[kruise.SubSetNameLabelKey] != "" &&
				strings.HasPrefix(pod.Labels[kruise.ControllerRevisionHashLabelKey], united.Name+"-")
		},
		revision: func(_ types.NamespacedName, pod *corev1.Pod) string {
			return pod.Labels[kruise.ControllerRevisionHashLabelKey]
		},
		place: func(pod *corev1.Pod) string {
			if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "StatefulSet" {
				return pod.Name
			}
			return pod.Labels[kruise.SubSetNameLabelKey]
		},
		facts: func(o client.Object) facts {
			united, ok := o.(*v1beta1.UnitedDeployment)
			if !ok {
				return facts{}
			}
			return unitedFacts(united)
		},
		reconciler: newUnited,
		bounds:     unitedBounds,
		subsets:    subsetsOf,
	}
}

func unitedFacts(united *v1beta1.UnitedDeployment) facts {
	f := facts{template: &corev1.PodTemplateSpec{}}
	switch t := &united.Spec.Template; {
	case t.CloneSetTemplate != nil:
		f = cloneSetFacts(&v1beta1.CloneSet{Spec: t.CloneSetTemplate.Spec})
		f.template = &t.CloneSetTemplate.Spec.Template
	case t.AdvancedStatefulSetTemplate != nil:
		f = statefulSetFacts(&v1beta1.StatefulSet{Spec: t.AdvancedStatefulSetTemplate.Spec})
		f.template = &t.AdvancedStatefulSetTemplate.Spec.Template
	case t.StatefulSetTemplate != nil:
		f.template = &t.StatefulSetTemplate.Spec.Template
	case t.DeploymentTemplate != nil:
		f.template = &t.DeploymentTemplate.Spec.Template
	}
	f.pods, f.ownTemplates = united.Spec.Selector, true
	f.current, f.update = united.Status.CurrentRevision, united.Status.UpdatedRevision
	f.bounds = Bounds{Replicas: ptr.Deref(united.Spec.Replicas, 0)}
	return f
}

// reasonSubset is the reason of a pod whose subset is gone.
const reasonSubset = "SubsetGone"

// united reconciles a UnitedDeployment and the workloads of its subsets.
type united struct {
	*simulation

	owner    reconcile.Reconciler
	children map[string]reconcile.Reconciler
	// notes are those of the last pass of each.
	notes map[types.NamespacedName][]note.Note
}

func newUnited(ctx context.Context, s *simulation) (reconcile.Reconciler, error) {
	u := &united{simulation: s, children: map[string]reconcile.Reconciler{}, notes: map[types.NamespacedName][]note.Note{}}
	if err := uniteddeployment.IndexPods(ctx, s.server); err != nil {
		return nil, fmt.Errorf("index pods: %w", err)
	}
	var err error
	if u.owner, err = uniteddeployment.New(s.server, uniteddeployment.Options{
		Live: s.server, Recorder: s.server, Now: s.now, Explain: u.explain,
	}); err != nil {
		return nil, err
	}
	s.explained = u.explain
	for _, k := range []*kind{cloneSets(), statefulSets()} {
		if u.children[k.name], err = k.reconciler(ctx, s); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// explain joins the notes of all workloads.
func (u *united) explain(_ context.Context, of types.NamespacedName, notes []note.Note) {
	u.notes[of] = notes
	u.simulation.notes = nil
	for _, name := range slices.SortedFunc(maps.Keys(u.notes), func(a, b types.NamespacedName) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		u.simulation.notes = append(u.simulation.notes, u.notes[name]...)
	}
	u.record.explain(notes)
}

// Reconcile implements reconcile.Reconciler.
func (u *united) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := u.owner.Reconcile(ctx, request)
	sooner := func(after time.Duration) {
		if after > 0 && (result.RequeueAfter == 0 || after < result.RequeueAfter) {
			result.RequeueAfter = after
		}
	}
	children, failed := u.workloads(ctx)
	if err = errors.Join(err, failed); err != nil {
		return result, err
	}
	for _, child := range children {
		after, failed := u.reconcileChild(ctx, child)
		err = errors.Join(err, failed)
		sooner(after)
	}
	return result, errors.Join(err, u.collect(ctx, children))
}

func (u *united) reconcileChild(ctx context.Context, child client.Object) (time.Duration, error) {
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(child)}
	name := "CloneSet"
	switch child.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet: // their controller is not simulated: they are as they ask for at once
		return 0, u.follow(ctx, child)
	case *v1beta1.StatefulSet:
		name = "StatefulSet"
	}
	result, err := u.children[name].Reconcile(ctx, request)
	return result.RequeueAfter, err
}

// follow has a workload of Kubernetes report what its spec asks for.
func (u *united) follow(ctx context.Context, child client.Object) error {
	before, ok := child.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy %T: the copy is no object", child)
	}
	switch set := child.(type) {
	case *appsv1.Deployment:
		n := ptr.Deref(set.Spec.Replicas, 1)
		set.Status = appsv1.DeploymentStatus{
			ObservedGeneration: set.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpdatedReplicas: n,
		}
	case *appsv1.StatefulSet:
		n := ptr.Deref(set.Spec.Replicas, 1)
		set.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: set.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpdatedReplicas: n,
		}
	}
	if err := u.server.Status().Patch(ctx, child, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch the status of %T: %w", child, err)
	}
	return nil
}

// workloads lists those of the subsets.
func (u *united) workloads(ctx context.Context) ([]client.Object, error) {
	var children []client.Object
	for _, list := range []client.ObjectList{
		&v1beta1.CloneSetList{}, &v1beta1.StatefulSetList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{},
	} {
		if err := u.server.List(ctx, list, client.InNamespace(u.name.Namespace)); err != nil {
			return nil, fmt.Errorf("list workloads: %w", err)
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			child, ok := o.(client.Object)
			if ref := metav1.GetControllerOfNoCopy(child); ok && ref != nil && ref.UID == u.object.GetUID() {
				children = append(children, child)
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("list workloads: %w", err)
		}
	}
	return children, nil
}

// collect deletes the pods of workloads that are gone, as the garbage collector does.
func (u *united) collect(ctx context.Context, children []client.Object) error {
	exists := map[types.UID]bool{}
	for _, child := range children {
		exists[child.GetUID()] = true
	}
	pods, err := u.pods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if ref := metav1.GetControllerOfNoCopy(pod); ref == nil || exists[ref.UID] || ref.Kind == "ReplicaSet" {
			continue
		}
		u.record.of(pod).why[reasonSubset] = note.Note{Code: reasonSubset, Text: "its subset is gone"}
		if err := u.server.Delete(ctx, pod); err != nil {
			return fmt.Errorf("delete %s: %w", pod.Name, err)
		}
	}
	return nil
}

// unitedBounds are the bounds of the workloads together.
func unitedBounds(ctx context.Context, s *simulation) (Bounds, error) {
	b := Bounds{Replicas: s.wanted.bounds.Replicas}
	children, err := (&united{simulation: s}).workloads(ctx)
	for _, child := range children {
		if k, err := kindOf(child); err == nil { // the pods of others are not forecast
			of := k.facts(child).bounds
			b.MaxUnavailable += of.MaxUnavailable
			b.MaxSurge += of.MaxSurge
			b.Partition += of.Partition
			b.MinAvailable += of.MinAvailable
		}
	}
	return b, err
}

// subsetsOf are the subsets before and after a change.
func subsetsOf(before, after client.Object) (all []Subset) {
	subsets := map[string]*Subset{}
	of := func(name string) *Subset {
		if subsets[name] == nil {
			subsets[name] = &Subset{Name: name}
		}
		return subsets[name]
	}
	for i, o := range []client.Object{before, after} {
		united, ok := o.(*v1beta1.UnitedDeployment)
		if !ok {
			continue
		}
		for _, status := range united.Status.SubsetStatuses {
			if subset := of(status.Name); i == 0 {
				subset.Before = status.Replicas
			} else {
				subset.After, subset.Partition = status.Replicas, status.Partition
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(subsets)) {
		all = append(all, *subsets[name])
	}
	return all
}
