package statefulset

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1 "k8s.io/api/apps/v1"

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
	pod := &corev1.Pod{Spec: template.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: s.set.Namespace, Name: name, GenerateName: s.set.Name + "-", Finalizers: template.Finalizers,
		Labels: labels.Merge(template.Labels, b.options.podLabels(name, revision, ordinal)),
		Annotations: labels.Merge(template.Annotations, labels.Set{
			kruise.LifecycleTimestampKey: s.Now.Format(time.RFC3339),
		}),
		OwnerReferences: []metav1.OwnerReference{s.ControllerRef()},
	}}
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
