package cloneset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// birth is one pod to create.
type birth struct{ id, revision string }

// create makes pods with their claims.
func (a *act) create(ctx context.Context, births []scale.Creation) (changed bool, err error) {
	if complete, err := a.look(ctx); err != nil || !complete {
		return !complete, err
	}
	templates := map[string]*corev1.PodTemplateSpec{}
	var all []birth
	for i, id := range a.ids(len(births)) {
		name := a.plan.current
		if births[i].Updated {
			name = a.plan.update
		}
		if templates[name] == nil {
			if templates[name], err = a.templateOf(name); err != nil {
				return false, err
			}
			if err := a.misfit(name, templates[name]); err != nil {
				return false, err
			}
		}
		all = append(all, birth{id, name})
	}
	a.memory.note(a.key(), func(r *recollection) {
		for _, b := range all {
			r.unborn[b.id] = true
		}
	})
	existing := a.claimNames()
	n, err := batches.Run(all, func(b birth) error {
		pod := a.newPod(b, templates[b.revision])
		if err := a.createPod(ctx, pod, b.id, existing); err != nil {
			a.tell(corev1.EventTypeWarning, reasonFailedCreate, "failed to create pod: %v, pod: %s", err, pod.Name)
			return err
		}
		a.tell(corev1.EventTypeNormal, reasonCreated, "succeed to create pod %s", pod.Name)
		return nil
	})
	return n > 0, err
}

func (a *act) createPod(ctx context.Context, pod *corev1.Pod, id string, existing sets.Set[string]) error {
	err := a.createClaims(ctx, id, existing)
	if err == nil {
		if err = a.client.Create(ctx, pod); err != nil {
			a.podWrites.Doubt(a.key(), pod, err)
			err = fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
	}
	if err == nil || apierrors.IsAlreadyExists(err) { // then the name is another's
		a.memory.note(a.key(), func(r *recollection) { delete(r.unborn, id) })
	}
	if err != nil {
		return err
	}
	a.podWrites.Created(a.key(), pod)
	return nil
}

func (a *act) templateOf(name string) (*corev1.PodTemplateSpec, error) {
	if name == a.plan.update {
		return &a.set.Spec.Template, nil
	}
	stored := a.stored(name)
	if stored == nil {
		return nil, fmt.Errorf("the revision %s is not stored", name)
	}
	return revision.Decode(stored.Data.Raw)
}

// linger is how long after its grace period a terminating pod keeps its claims from being used by a new one.
const linger = 30 * time.Second

// ids are names for new pods: those of claims that no pod has any more first, then those that an attempt has failed with, then
// fresh ones. They are fewer than asked for
// where claims are about to be free, because their pod is terminating.
func (a *act) ids(n int) []string {
	taken, leaving := sets.New[string](), sets.New[string]()
	for _, pod := range slices.Concat(a.pods, a.inactive, a.strays) {
		id := pod.Labels[pub.CloneSetInstanceIDKey]
		taken.Insert(id, strings.TrimPrefix(pod.Name, a.set.Name+"-"))
		if a.isDead(pod) {
			leaving.Insert(id)
		}
		if pod.DeletionTimestamp == nil {
			continue
		}
		if rest := pod.DeletionTimestamp.Add(linger).Sub(a.now); rest > 0 {
			leaving.Insert(id)
			a.wake(rest)
		}
	}
	var ids []string
	waiting := sets.New[string]()
	for _, claim := range a.claims {
		switch id := claim.Labels[pub.CloneSetInstanceIDKey]; {
		case id == "":
		case leaving.Has(id):
			waiting.Insert(id)
		case !taken.Has(id) && len(ids) < n:
			taken.Insert(id)
			ids = append(ids, id)
		}
	}
	fresh := a.unborn()
	for len(ids) < n-len(waiting) {
		if len(fresh) == 0 {
			fresh = append(fresh, a.options.NewID())
		}
		id := fresh[0]
		fresh = fresh[1:]
		if !taken.Has(id) {
			taken.Insert(id)
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (a *act) newPod(b birth, template *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
	copied := template.DeepCopy()
	pod.ObjectMeta = metav1.ObjectMeta{
		Namespace: a.set.Namespace, Name: a.set.Name + "-" + b.id, GenerateName: a.set.Name + "-",
		Labels: copied.Labels, Annotations: copied.Annotations, Finalizers: copied.Finalizers,
		OwnerReferences: []metav1.OwnerReference{controllerRef(a.set)},
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Labels[pub.PodRevisionLabelKey] = a.revisionLabel(b.revision)
	pod.Labels[pub.PodTemplateHashLabelKey] = revision.Short(b.revision)
	pod.Labels[pub.CloneSetInstanceIDKey] = b.id
	pod.Labels[pub.LifecycleStateKey] = string(pub.LifecycleStatePreparingNormal)
	pod.Annotations[pub.LifecycleTimestampKey] = a.now.Format(time.RFC3339)
	if !lifecycle.HasGate(pod, pub.InPlaceUpdateReady) {
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: pub.InPlaceUpdateReady})
	}
	for i := range a.set.Spec.VolumeClaimTemplates {
		name := a.set.Spec.VolumeClaimTemplates[i].Name
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(name, a.set.Name, b.id)},
		}})
	}
	return pod
}

// createClaims makes the claims of a pod that are missing.
func (a *act) createClaims(ctx context.Context, id string, existing sets.Set[string]) error {
	for i := range a.set.Spec.VolumeClaimTemplates {
		claim := a.newClaim(&a.set.Spec.VolumeClaimTemplates[i], id)
		if existing.Has(claim.Name) {
			continue
		}
		err := a.client.Create(ctx, claim)
		if apierrors.IsAlreadyExists(err) {
			continue // of an attempt before, or not ours: then the pod does not start, and says why
		}
		if err != nil {
			a.claimWrites.Doubt(a.key(), claim, err)
			return fmt.Errorf("create claim %s: %w", claim.Name, err)
		}
		a.claimWrites.Created(a.key(), claim)
	}
	return nil
}

func (a *act) newClaim(template *corev1.PersistentVolumeClaim, id string) *corev1.PersistentVolumeClaim {
	copied := template.DeepCopy()
	claim := &corev1.PersistentVolumeClaim{Spec: copied.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: a.set.Namespace, Name: claimName(template.Name, a.set.Name, id),
		Labels: copied.Labels, Annotations: copied.Annotations, Finalizers: copied.Finalizers,
		OwnerReferences: []metav1.OwnerReference{controllerRef(a.set)},
	}}
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	maps.Copy(claim.Labels, a.set.Spec.Selector.MatchLabels)
	claim.Labels[pub.CloneSetInstanceIDKey] = id
	return claim
}

func (a *act) claimNames() sets.Set[string] {
	names := sets.New[string]()
	for _, claim := range a.claims {
		names.Insert(claim.Name)
	}
	return names
}

func claimName(template, set, id string) string { return template + "-" + set + "-" + id }

func controllerRef(set *v1beta1.CloneSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(set, gvk())
}
