package standin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/revision"
)

// Deployments plays the controllers of Deployments and of ReplicaSets, as far as rollouts go: templates are compared
// without the label of the hash, a paused Deployment gets no ReplicaSet and scales the one that has the pods, of two
// ReplicaSets with equal templates the older one counts, and its annotations are those of the Deployment.
type Deployments struct {
	Client client.Client
	// Cache has the ReplicaSets that the controller of Deployments observes; nil for the client.
	Cache client.Reader
	// pods counts those that were created.
	pods int
}

const (
	revisionKey = "deployment.kubernetes.io/revision"
	hashKey     = appsv1.DefaultDeploymentUniqueLabelKey
)

// Step runs the controllers of Deployments and of ReplicaSets once over a Deployment.
func (b *Deployments) Step(ctx context.Context, name types.NamespacedName) error {
	d := &appsv1.Deployment{}
	if err := b.Client.Get(ctx, name, d); err != nil {
		return err
	}
	cache := b.Cache
	if cache == nil {
		cache = b.Client
	}
	sets, err := b.sets(ctx, cache, d)
	if err != nil {
		return err
	}
	if err := b.sync(ctx, d, sets); err != nil {
		return err
	}
	if sets, err = b.sets(ctx, b.Client, d); err != nil {
		return err
	}
	for _, set := range sets {
		if err := b.fill(ctx, set); err != nil {
			return err
		}
	}
	if err := b.Client.Get(ctx, name, d); err != nil {
		return err
	}
	if sets, err = b.sets(ctx, b.Client, d); err != nil {
		return err
	}
	return b.report(ctx, d, sets)
}

// sets returns the ReplicaSets of a Deployment, the oldest first.
func (*Deployments) sets(
	ctx context.Context, from client.Reader, d *appsv1.Deployment,
) ([]*appsv1.ReplicaSet, error) {
	var list appsv1.ReplicaSetList
	if err := from.List(ctx, &list, client.InNamespace(d.Namespace)); err != nil {
		return nil, err
	}
	sets := revision.ControlledBy[appsv1.ReplicaSet](d, list.Items)
	slices.SortFunc(sets, func(x, y *appsv1.ReplicaSet) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	return sets, nil
}

func template(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t = *t.DeepCopy()
	delete(t.Labels, hashKey)
	return t
}

// split finds the ReplicaSet of the template of a Deployment; nil for none.
func split(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) (newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) {
	for _, set := range sets {
		if newest == nil && apiequality.Semantic.DeepEqual(template(set.Spec.Template), template(d.Spec.Template)) {
			newest = set
			continue
		}
		old = append(old, set)
	}
	return newest, old
}

func number(o metav1.Object) int {
	n, _ := strconv.Atoi(o.GetAnnotations()[revisionKey])
	return n
}

func highest(sets []*appsv1.ReplicaSet) (n int) {
	for _, set := range sets {
		n = max(n, number(set))
	}
	return n
}

func (b *Deployments) sync(ctx context.Context, d *appsv1.Deployment, sets []*appsv1.ReplicaSet) error {
	newest, old := split(d, sets)
	if newest == nil && !d.Spec.Paused {
		var err error
		if newest, err = b.create(ctx, d, old); err != nil {
			return err
		}
	}
	if newest != nil {
		if err := b.annotate(ctx, d, newest, old); err != nil {
			return err
		}
	}
	if d.Spec.Paused {
		return errors.Join(b.scaleActive(ctx, d, sets), b.trim(ctx, d, old))
	}
	if err := b.roll(ctx, d, newest, old); err != nil {
		return err
	}
	return b.trim(ctx, d, old)
}

func (b *Deployments) create(
	ctx context.Context, d *appsv1.Deployment, old []*appsv1.ReplicaSet,
) (*appsv1.ReplicaSet, error) {
	t := template(d.Spec.Template)
	data, err := revision.Encode(&t)
	if err != nil {
		return nil, err
	}
	hash := revision.Hash(data, d.Status.CollisionCount)
	t.Labels[hashKey] = hash
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Namespace, Name: d.Name + "-" + hash, Labels: t.Labels,
		Annotations:     map[string]string{revisionKey: strconv.Itoa(highest(old) + 1)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, kind)},
	}}
	set.Spec = appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(0)), Selector: d.Spec.Selector.DeepCopy(), Template: t}
	set.Spec.Selector.MatchLabels[hashKey] = hash
	err = b.Client.Create(ctx, set)
	if !apierrors.IsAlreadyExists(err) {
		return set, err
	}
	before := d.DeepCopy()
	d.Status.CollisionCount = ptr.To(ptr.Deref(d.Status.CollisionCount, 0) + 1)
	if err := b.Client.Status().Patch(ctx, d, client.MergeFrom(before)); err != nil {
		return nil, err
	}
	return b.create(ctx, d, old)
}

// annotate copies the annotations of a Deployment to the ReplicaSet of its template, and numbers both.
func (b *Deployments) annotate(
	ctx context.Context, d *appsv1.Deployment, newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet,
) error {
	before := newest.DeepCopy()
	for key, value := range d.Annotations {
		if key != revisionKey {
			metav1.SetMetaDataAnnotation(&newest.ObjectMeta, key, value)
		}
	}
	metav1.SetMetaDataAnnotation(&newest.ObjectMeta, revisionKey, strconv.Itoa(max(number(newest), highest(old)+1)))
	if err := b.Client.Patch(ctx, newest, observed(before)); err != nil {
		return err
	}
	deployment := d.DeepCopy()
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, revisionKey, newest.Annotations[revisionKey])
	return b.Client.Patch(ctx, d, client.MergeFrom(deployment))
}

func (b *Deployments) scale(ctx context.Context, set *appsv1.ReplicaSet, replicas int32) error {
	if *set.Spec.Replicas == replicas {
		return nil
	}
	before := set.DeepCopy()
	set.Spec.Replicas = &replicas
	return b.Client.Patch(ctx, set, observed(before))
}

// observed is a patch of an object at the version that was observed.
func observed(o client.Object) client.Patch {
	return client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})
}

func (b *Deployments) scaleActive(ctx context.Context, d *appsv1.Deployment, sets []*appsv1.ReplicaSet) error {
	active := slices.DeleteFunc(slices.Clone(sets), func(set *appsv1.ReplicaSet) bool { return *set.Spec.Replicas == 0 })
	if len(active) == 1 {
		return b.scale(ctx, active[0], *d.Spec.Replicas)
	}
	if len(active) == 0 && len(sets) > 0 {
		latest := slices.MaxFunc(sets, func(x, y *appsv1.ReplicaSet) int { return cmp.Compare(number(x), number(y)) })
		return b.scale(ctx, latest, *d.Spec.Replicas)
	}
	return nil
}

// roll goes one step from old ReplicaSets to the newest: one pod more than wanted, and none less.
func (b *Deployments) roll(
	ctx context.Context, d *appsv1.Deployment, newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet,
) error {
	total, available := *newest.Spec.Replicas, newest.Status.AvailableReplicas
	for _, set := range old {
		total += *set.Spec.Replicas
		available += set.Status.AvailableReplicas
	}
	want := *d.Spec.Replicas
	grown := min(want, *newest.Spec.Replicas+max(want+1-total, 0))
	if err := b.scale(ctx, newest, grown); err != nil {
		return err
	}
	for spare := available - want; spare > 0 || want == 0; spare-- {
		at := slices.IndexFunc(old, func(set *appsv1.ReplicaSet) bool { return *set.Spec.Replicas > 0 })
		if at < 0 {
			break
		}
		if err := b.scale(ctx, old[at], *old[at].Spec.Replicas-1); err != nil {
			return err
		}
	}
	return nil
}

// trim deletes old ReplicaSets beyond the limit.
func (b *Deployments) trim(ctx context.Context, d *appsv1.Deployment, old []*appsv1.ReplicaSet) error {
	old = slices.DeleteFunc(slices.Clone(old), func(set *appsv1.ReplicaSet) bool {
		return *set.Spec.Replicas > 0 || set.Status.Replicas > 0
	})
	slices.SortStableFunc(old, func(x, y *appsv1.ReplicaSet) int { return cmp.Compare(number(x), number(y)) })
	for k := range len(old) - int(ptr.Deref(d.Spec.RevisionHistoryLimit, 10)) {
		if err := b.Client.Delete(ctx, old[k]); err != nil {
			return err
		}
	}
	return nil
}

// fill creates and deletes the pods of a ReplicaSet, and counts them.
func (b *Deployments) fill(ctx context.Context, set *appsv1.ReplicaSet) error {
	var list corev1.PodList
	if err := b.Client.List(ctx, &list, client.InNamespace(set.Namespace)); err != nil {
		return err
	}
	pods := slices.DeleteFunc(revision.ControlledBy[corev1.Pod](set, list.Items), func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed
	})
	slices.SortFunc(pods, func(x, y *corev1.Pod) int {
		return cmp.Or(cmp.Compare(ready(y), ready(x)), cmp.Compare(x.Name, y.Name))
	})
	n, available := int32(len(pods)), 0
	for _, pod := range pods {
		available += ready(pod)
	}
	for ; n > *set.Spec.Replicas; n-- {
		if err := b.Client.Delete(ctx, pods[n-1]); err != nil {
			return err
		}
	}
	for ; n < *set.Spec.Replicas; n++ {
		b.pods++
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name = set.Namespace, fmt.Sprintf("%s-%03d", set.Name, b.pods)
		pod.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
		}
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
		if err := b.Client.Create(ctx, pod); err != nil {
			return err
		}
	}
	before := set.DeepCopy()
	set.Status.Replicas, set.Status.AvailableReplicas = n, int32(min(available, int(n)))
	set.Status.ObservedGeneration = set.Generation
	return b.Client.Status().Patch(ctx, set, client.MergeFrom(before))
}

func ready(pod *corev1.Pod) int {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return 1
		}
	}
	return 0
}

func (b *Deployments) report(ctx context.Context, d *appsv1.Deployment, sets []*appsv1.ReplicaSet) error {
	newest, _ := split(d, sets)
	before := d.DeepCopy()
	d.Status.ObservedGeneration = d.Generation
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 0, 0, 0
	for _, set := range sets {
		d.Status.Replicas += set.Status.Replicas
		d.Status.AvailableReplicas += set.Status.AvailableReplicas
	}
	if newest != nil {
		d.Status.UpdatedReplicas = newest.Status.Replicas
	}
	return b.Client.Status().Patch(ctx, d, client.MergeFrom(before))
}
