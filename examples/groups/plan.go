package main

import (
	"cmp"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// team is the resource that team.yaml defines.
type team struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas, Size, Partition int32
		MaxUnavailable            *intstr.IntOrString
		Leader, Worker            corev1.PodTemplateSpec
	}
	Status struct {
		CurrentRevision string // of the groups below the partition
	}
}

// Pods and revisions carry the team in a label; pods also carry their group and their place in it.
const teamLabel, groupLabel, memberLabel = "example.com/team", "example.com/group", "example.com/member"

// historyLimit is how many revisions are stored besides those that pods run.
const historyLimit = 5

// observation is everything that a pass depends on.
type observation struct {
	*team

	now       time.Time
	pods      []*corev1.Pod
	revisions []*appsv1.ControllerRevision
	repeats   workload.Repeats
}

// input describes the team to package workload, and returns the write that stores a new revision; nil where it is stored.
func (o *observation) input() (in workload.Input, store *write.Write, err error) {
	data, err := revision.EncodeRoles(map[string]*corev1.PodTemplateSpec{"leader": &o.Spec.Leader, "worker": &o.Spec.Worker})
	if err != nil {
		return in, nil, err
	}
	_, unavailable, err := scale.ResolveFenceposts(nil, o.Spec.MaxUnavailable, o.Spec.Replicas)
	in = workload.Input{
		Scale:     scale.Input{Now: o.now, Slots: []string{}, Limits: scale.Limits{Partition: o.Spec.Partition, MaxUnavailable: unavailable}},
		Instances: workload.Groups(o.pods, groupLabel, memberLabel),
		Members:   []workload.Member{{Name: "leader", Role: "leader"}},
		Strategy:  workload.InPlaceIfPossible,
		Repeats:   o.repeats,
	}
	r := revision.Resolve(revision.Input{Owner: o.Name, Data: data, Have: o.revisions, Current: o.Status.CurrentRevision})
	newest, store := r.Write(o.owned("", nil))
	in.SetRevisions(r, newest, o.revisions)
	for i := range o.Spec.Replicas {
		in.Scale.Slots = append(in.Scale.Slots, fmt.Sprintf("%s-%d", o.Name, i))
	}
	for i := int32(1); i < o.Spec.Size; i++ {
		in.Members = append(in.Members, workload.Member{Name: fmt.Sprintf("w%d", i), Role: "worker"})
	}
	in.Build = func(creations []workload.Creation) (all [][]write.Object, err error) {
		for _, c := range creations {
			pod, err := o.build(&in, c)
			if err != nil {
				return nil, err
			}
			all = append(all, []write.Object{pod})
		}
		return all, nil
	}
	return in, store, err
}

// build makes a pod. The slots name the leaders, and a leader names its workers: a creation that is sent twice never makes two pods.
func (o *observation) build(in *workload.Input, c workload.Creation) (*corev1.Pod, error) {
	template, err := in.Template(c)
	if err != nil {
		return nil, err
	}
	group := cmp.Or(c.Instance, c.Slot)
	name := group
	if c.Member.Role == "worker" {
		name += "-" + c.Member.Name // never the name of a leader, which ends with a number
	}
	own := labels.Set{groupLabel: group, memberLabel: c.Member.Name, kruise.PodRevisionLabelKey: c.Revision}
	pod := &corev1.Pod{ObjectMeta: o.owned(name, labels.Merge(template.Labels, own)), Spec: template.Spec}
	pod.Annotations = template.Annotations
	inplace.EnsureReadinessGate(&pod.Spec)
	return pod, nil
}

// owned is the metadata of an object of the team.
func (o *observation) owned(name string, more labels.Set) metav1.ObjectMeta {
	owner := metav1.NewControllerRef(o, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Team"})
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: name, Labels: labels.Merge(more, labels.Set{teamLabel: o.Name}), OwnerReferences: []metav1.OwnerReference{*owner}}
}
