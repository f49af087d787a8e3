package forecast

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// rolling plays the built-in controllers of a Deployment and of its ReplicaSets. The engine updates the pods in place
// while the Deployment is paused.
type rolling struct{ *builtIn }

// Reconcile implements reconcile.Reconciler.
func (r rolling) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	d := &appsv1.Deployment{}
	if err := r.server.Get(ctx, r.name, d); err != nil {
		return ctrl.Result{}, fmt.Errorf("get Deployment: %w", err)
	}
	r.object = d
	newest, err := r.revise(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, simulatedRevisionKey, revision.Short(newest))
	if err := r.server.Patch(ctx, d, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return ctrl.Result{}, fmt.Errorf("note the revision: %w", err)
	}
	if err := r.sync(ctx, d); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.report(ctx, func() { d.Status.ObservedGeneration = d.Generation }); err != nil {
		return ctrl.Result{}, err
	}
	r.held = r.held || isHeld(d)
	result, err := r.engine.Reconcile(ctx, request)
	if after := (&appsv1.Deployment{}); isHeld(d) && r.server.Get(ctx, r.name, after) == nil && !isHeld(after) {
		r.released = r.clock
	}
	return result, err
}

// sync gives each ReplicaSet its pods.
func (r rolling) sync(ctx context.Context, d *appsv1.Deployment) error {
	var list appsv1.ReplicaSetList
	if err := r.server.List(ctx, &list, client.InNamespace(r.name.Namespace)); err != nil {
		return fmt.Errorf("list ReplicaSets: %w", err)
	}
	old := revision.ControlledBy[appsv1.ReplicaSet](d, list.Items)
	slices.SortFunc(old, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var newest *appsv1.ReplicaSet
	template := withoutHash(&d.Spec.Template)
	at := slices.IndexFunc(old, func(set *appsv1.ReplicaSet) bool {
		return apiequality.Semantic.DeepEqual(withoutHash(&set.Spec.Template), template)
	})
	var err error
	switch {
	case at >= 0:
		newest = old[at]
		old = slices.Delete(old, at, at+1)
	case !d.Spec.Paused:
		newest, err = r.createSet(ctx, d, old)
	}
	if err == nil && newest != nil {
		err = r.annotate(ctx, d, newest)
	}
	if err == nil {
		err = r.scaleSets(ctx, d, newest, old)
	}
	if err == nil && newest != nil {
		err = r.fill(ctx, newest, "")
	}
	for _, set := range old {
		if err == nil {
			err = r.fill(ctx, set, r.why(d))
		}
	}
	return err
}

func withoutHash(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	template = template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return template
}

func (r rolling) createSet(
	ctx context.Context, d *appsv1.Deployment, have []*appsv1.ReplicaSet,
) (*appsv1.ReplicaSet, error) {
	hash := d.Annotations[simulatedRevisionKey]
	for slices.ContainsFunc(have, func(set *appsv1.ReplicaSet) bool { return set.Name == d.Name+"-"+hash }) {
		hash += "x"
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Namespace, Name: d.Name + "-" + hash, OwnerReferences: r.ownerReferences(),
	}}
	set.Spec = appsv1.ReplicaSetSpec{
		Replicas: ptr.To(int32(0)), Selector: d.Spec.Selector.DeepCopy(), Template: *d.Spec.Template.DeepCopy(),
	}
	metav1.AddLabelToSelector(set.Spec.Selector, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	metav1.SetMetaDataLabel(&set.Spec.Template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	if err := r.server.Create(ctx, set); err != nil {
		return nil, fmt.Errorf("create ReplicaSet: %w", err)
	}
	return set, nil
}

// annotate copies the annotations of a Deployment to the ReplicaSet of its template.
func (r rolling) annotate(ctx context.Context, d *appsv1.Deployment, set *appsv1.ReplicaSet) error {
	before := set.DeepCopy()
	for key, value := range d.Annotations {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, value)
	}
	if err := r.server.Patch(ctx, set, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("annotate ReplicaSet: %w", err)
	}
	return nil
}

// scaleSets scales the ReplicaSets of a Deployment: by its strategy, or the one that has the pods while it is paused.
func (r rolling) scaleSets(
	ctx context.Context, d *appsv1.Deployment, newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet,
) error {
	active, err := r.active(ctx, d, old)
	if err != nil {
		return err
	}
	replicas := ptr.Deref(d.Spec.Replicas, 1)
	switch {
	case newest != nil && (len(active) == 0 || *newest.Spec.Replicas > replicas):
		return r.scale(ctx, newest, replicas)
	case d.Spec.Paused && len(active) == 1 && (newest == nil || *newest.Spec.Replicas == 0):
		return r.scale(ctx, active[0], replicas)
	case d.Spec.Paused:
		return nil
	}
	r.rollsOut = true
	return r.roll(ctx, d, newest, active)
}

func recreates(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
}

// active returns the ReplicaSets that have pods. With the strategy Recreate, pods that terminate count.
func (r rolling) active(
	ctx context.Context, d *appsv1.Deployment, sets []*appsv1.ReplicaSet,
) (active []*appsv1.ReplicaSet, err error) {
	for _, set := range sets {
		pods, err := r.podsOf(ctx, set)
		if err != nil {
			return nil, err
		}
		if *set.Spec.Replicas > 0 || recreates(d) && !d.Spec.Paused && len(pods) > 0 {
			active = append(active, set)
		}
	}
	return active, nil
}

// roll goes one step from older ReplicaSets to the newest.
func (r rolling) roll(
	ctx context.Context, d *appsv1.Deployment, newest *appsv1.ReplicaSet, active []*appsv1.ReplicaSet,
) error {
	b := rollingBounds(d)
	total, available := *newest.Spec.Replicas, newest.Status.AvailableReplicas
	spare := available - b.MinAvailable // how many pods the older ReplicaSets may lose, available or not
	for _, set := range active {
		total += *set.Spec.Replicas
		available += set.Status.AvailableReplicas
		spare += *set.Spec.Replicas
	}
	grown := min(b.Replicas, *newest.Spec.Replicas+max(b.Replicas+b.MaxSurge-total, 0))
	if recreates(d) {
		grown = 0
	}
	if err := r.scale(ctx, newest, grown); err != nil {
		return err
	}
	for _, set := range active {
		unavailable := *set.Spec.Replicas - set.Status.AvailableReplicas
		lost := min(unavailable+max(available-b.MinAvailable, 0), *set.Spec.Replicas, max(spare, 0))
		spare, available = spare-lost, available-max(lost-unavailable, 0)
		if err := r.scale(ctx, set, *set.Spec.Replicas-lost); err != nil {
			return err
		}
	}
	return nil
}

// podsOf lists the pods of a ReplicaSet.
func (r rolling) podsOf(ctx context.Context, set *appsv1.ReplicaSet) ([]*corev1.Pod, error) {
	pods, err := r.pods(ctx)
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, set) }), err
}

func (r rolling) scale(ctx context.Context, set *appsv1.ReplicaSet, replicas int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if err := r.server.Patch(ctx, set, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("scale ReplicaSet: %w", err)
	}
	return nil
}

// why returns why the built-in controllers make a change.
func (r rolling) why(d *appsv1.Deployment) string {
	for _, e := range r.server.Events(d, "HoldEnded") {
		if _, why, found := strings.Cut(e.Message, "rolling update makes the change: "); found {
			return why
		}
	}
	return "nothing holds the change: the Deployment is not paused"
}

// fill creates and deletes the pods of a ReplicaSet, and counts them. why is why an older one loses pods.
func (r rolling) fill(ctx context.Context, set *appsv1.ReplicaSet, why string) error {
	pods, err := r.podsOf(ctx, set)
	if err != nil {
		return err
	}
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || workload.IsFinished(pod)
	})
	available := int32(0)
	rank := func(pod *corev1.Pod) int { // unavailable pods are deleted first
		if is, _ := r.available(pod); is {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(rank(a), rank(b)) })
	for len(pods) > int(*set.Spec.Replicas) {
		notes := r.record.of(pods[0]).why
		notes[scale.NoteScaleIn] = note.Note{Code: scale.NoteScaleIn, Text: "the workload asks for fewer pods"}
		if why != "" && r.rollsOut {
			notes[workload.NoteNotInPlace] = note.Note{Code: workload.NoteNotInPlace, Text: why}
		}
		if err := r.server.Delete(ctx, pods[0]); err != nil {
			return fmt.Errorf("delete pod: %w", err)
		}
		pods = pods[1:]
	}
	for _, pod := range pods {
		available += int32(rank(pod))
	}
	for n := len(pods); n < int(*set.Spec.Replicas); n++ {
		if err := r.createPod(ctx, set); err != nil {
			return err
		}
	}
	before := set.DeepCopy()
	set.Status.Replicas, set.Status.AvailableReplicas = *set.Spec.Replicas, available
	if err := r.server.Status().Patch(ctx, set, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch the status of ReplicaSet: %w", err)
	}
	return nil
}

func (r rolling) createPod(ctx context.Context, set *appsv1.ReplicaSet) error {
	have, err := r.revisions(ctx)
	if err != nil {
		return err
	}
	found, _, err := resolve(r.name.Name, plainTemplate(set), have)
	if err != nil {
		return err
	}
	template := set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = set.Namespace, set.Name+"-"
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.ControllerRevisionHashLabelKey, revision.Short(found.Name))
	if err := r.server.Create(ctx, pod); err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	return nil
}
