package statefulset

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// identity gives new pods their identity and their claims.
type identity struct {
	options  Options
	snapshot *snapshot
	plan     *plan
	input    *workload.Input
}

// retryTaken is when to look again at a name that is taken.
const retryTaken = 30 * time.Second

// noteNameTaken is the code of a note about a slot whose pod waits for its name.
const noteNameTaken = "PodNameTaken"

// build returns, for each creation, the missing claims and the pod.
func (b *identity) build(creations []workload.Creation) ([][]write.Object, error) {
	s := b.snapshot
	all := make([][]write.Object, len(creations))
	most := b.plan.MaxCreations(&s.Observation, len(creations), &s.set.Spec)
	for i, c := range creations {
		if most == 0 {
			break // the next pass goes on
		}
		template := s.set.Spec.Template.DeepCopy()
		if c.Revision != b.plan.Update {
			var err error
			if template, err = b.input.Template(c); err != nil {
				return nil, err
			}
			if err := s.selectorMismatch(template, c.Revision); err != nil {
				return nil, err
			}
		}
		ordinal, _ := s.ordinal(c.Slot)
		if wait := s.wait(ordinal); wait != nil {
			b.plan.Waits = append(b.plan.Waits, *wait)
			b.plan.After.In(retryTaken)
			continue
		}
		all[i] = append(s.claims.Missing(ordinal), b.newPod(ordinal, c.Revision, template))
		most--
	}
	return all, nil
}

// wait is why a pod cannot be created now; nil where it can be.
func (s *snapshot) wait(ordinal int32) *note.Note {
	name := ordinals.Name(s.set.Name, ordinal)
	if s.Taken[name] {
		text := fmt.Sprintf("pod %s exists, and the set does not control it", name)
		return &note.Note{Level: note.Waiting, Object: name, Code: noteNameTaken, Text: text}
	}
	return s.claims.Wait(name, ordinal)
}

func (b *identity) newPod(ordinal int32, revision string, template *corev1.PodTemplateSpec) *corev1.Pod {
	s := b.snapshot
	name := ordinals.Name(s.set.Name, ordinal)
	pod := s.NewPod(template, name, b.options.podLabels(name, revision, ordinal))
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.LifecycleTimestampKey, s.Now.Format(time.RFC3339))
	if hooks := s.set.Spec.Lifecycle; hooks != nil && hooks.PreNormal != nil && !lifecycle.HasAll(pod, hooks.PreNormal) {
		pod.Labels[kruise.LifecycleStateKey] = string(kruise.LifecycleStatePreparingNormal)
	}
	pod.Spec.Hostname, pod.Spec.Subdomain = name, s.set.Spec.ServiceName
	claims.Mount(&pod.Spec, s.set.Spec.VolumeClaimTemplates, s.set.Name, strconv.Itoa(int(ordinal)))
	return pod
}

// podLabels are those that the reconciler writes to a new pod.
func (o Options) podLabels(name, revision string, ordinal int32) labels.Set {
	all := labels.Set{
		appsv1.StatefulSetPodNameLabel: name,
		kruise.PodRevisionLabelKey:     revision,
		kruise.LifecycleStateKey:       string(kruise.LifecycleStateNormal),
	}
	if !o.NoPodIndex {
		all[appsv1.PodIndexLabel] = strconv.Itoa(int(ordinal))
	}
	return all
}

// selectorMismatch is why a template cannot be used.
func (s *snapshot) selectorMismatch(template *corev1.PodTemplateSpec, name string) error {
	return s.SelectorMismatch(labels.Merge(template.Labels, Options{}.podLabels(s.set.Name+"-0", name, 0)), name)
}

// claimsOf are the claims of the pods of a set, before any is read. Unknown policies retain.
func (o Options) claimsOf(set *v1beta1.StatefulSet) claims.Named {
	named := claims.Named{
		Namespace: set.Namespace,
		Workload:  set.Name,
		Templates: set.Spec.VolumeClaimTemplates,
		Labels:    set.Spec.Selector.MatchLabels,
	}
	if o.IgnoreRetention {
		return named
	}
	named.Retention = &claims.Retention{
		Workload: metav1.OwnerReference{APIVersion: gvk().GroupVersion().String(), Kind: kind, Name: set.Name, UID: set.UID},
	}
	if policy := set.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		named.Retention.WithWorkload = policy.WhenDeleted == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType
		named.Retention.WithPod = policy.WhenScaled == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return named
}

// expands reports whether updates of pods expand their claims.
func (o Options) expands(set *v1beta1.StatefulSet) bool {
	return o.ExpandClaims &&
		set.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
}

// firstWrites release and adopt pods, repair what identifies a pod, and create claims that pods wait for.
func (s *snapshot) firstWrites() []write.Write {
	writes := s.Ownership()
	if s.IsDeleted() {
		return nil
	}
	for _, pod := range s.Active {
		ordinal, _ := s.ordinal(pod.Name)
		if !s.window.Contains(ordinal) {
			continue
		}
		if pod.Labels[appsv1.StatefulSetPodNameLabel] != pod.Name {
			path := write.Pointer("metadata", "labels", appsv1.StatefulSetPodNameLabel)
			writes = append(writes,
				*write.JSON(pod, write.Main, write.Test("/metadata/uid", pod.UID), write.Add(path, pod.Name)))
		}
		if pod.Status.Phase == corev1.PodPending {
			for _, claim := range s.claims.Missing(ordinal) {
				writes = append(writes, write.Write{Verb: write.Create, Object: claim})
			}
		}
	}
	return writes
}

// retain returns what is written before a pod is deleted: where the set does not want its ordinal any more, and the
// policy deletes the claims then, they refer to the pod, with which the garbage collector deletes them. The claims of a
// wanted ordinal outlast the pod.
func (s *snapshot) retain(pod *corev1.Pod) []write.Write {
	ordinal, ok := s.ordinal(pod.Name)
	return s.claims.Refer(pod, ordinal, !ok || !s.window.Contains(ordinal))
}

// compareClaims marks the instances that update for their claims: those that lack one, and with expand those whose
// claims are to grow.
func (s *snapshot) compareClaims(p *plan, in *workload.Input, expand bool) {
	for k := range in.Instances {
		i := &in.Instances[k]
		pod := i.Pods[0].Pod
		ordinal, _ := s.ordinal(pod.Name)
		rank, wanted := s.window.Rank(ordinal)
		updates := wanted && rank >= p.limits.Partition
		i.MarkedForDeletion = updates && !claims.Mounts(&pod.Spec, s.set.Spec.VolumeClaimTemplates)
		if !expand {
			continue
		}
		fit := s.claims.Fit(pod, ordinal, s.Now)
		i.Outdated, i.Impaired = i.Outdated || fit.Outdated, i.Impaired || fit.Grows
		if updates {
			i.MarkedForDeletion = i.MarkedForDeletion || fit.Remounts
			p.After.In(fit.RemountsAfter)
		}
	}
}

// volumeClaims counts the claims of pods in slots, by template.
func (s *snapshot) volumeClaims() []v1beta1.VolumeClaimStatus {
	if templates := s.set.Spec.VolumeClaimTemplates; len(templates) == 0 || s.IsDeleted() {
		return s.set.Status.VolumeClaims[:min(len(templates), len(s.set.Status.VolumeClaims))]
	}
	return s.claims.Status(s.ordinals(slices.Concat(s.Active, s.Inactive), s.window.Contains))
}
