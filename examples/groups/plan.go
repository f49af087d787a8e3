package main

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
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

// input describes the team to package workload.
func (t *team) input(pods []*corev1.Pod, revisions []*appsv1.ControllerRevision) (in workload.Input, err error) {
	d, err := revision.EncodeRoles(map[string]*corev1.PodTemplateSpec{"leader": &t.Spec.Leader, "worker": &t.Spec.Worker})
	_, maxUnavailable, invalid := scale.ResolveFenceposts(nil, t.Spec.MaxUnavailable, t.Spec.Replicas)
	in = workload.Input{
		Owner:     workload.OwnedBy(t, schema.FromAPIVersionAndKind("example.com/v1", "Team"), labels.Set{teamLabel: t.Name}),
		Instances: workload.Groups(pods, groupLabel, memberLabel),
		Members:   []workload.Member{{Name: "leader", Role: "leader"}},
		Group:     workload.Group{Label: groupLabel, MemberLabel: memberLabel}, // the pods are named after them
		Strategy:  workload.InPlaceIfPossible,
	}
	for i := int32(1); i < t.Spec.Size; i++ {
		in.Members = append(in.Members, workload.Member{Name: fmt.Sprintf("w%d", i), Role: "worker"})
	}
	in.Scale.Slots, in.Scale.Limits = []string{}, scale.Limits{Partition: t.Spec.Partition, MaxUnavailable: maxUnavailable}
	for i := range t.Spec.Replicas {
		in.Scale.Slots = append(in.Scale.Slots, fmt.Sprintf("%s-%d", t.Name, i))
	}
	return in, errors.Join(err, invalid, in.SetHistory(workload.History{
		Data: d, Stored: revisions, Current: t.Status.CurrentRevision, Limit: historyLimit,
	}))
}
