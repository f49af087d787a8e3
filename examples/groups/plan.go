package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/pub"
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
	pods      []corev1.Pod
	revisions []*appsv1.ControllerRevision
	// data holds the templates of each revision by its name.
	data map[string][]byte
}

// observe selects the pods and revisions that the team owns.
func observe(t *team, pods []corev1.Pod, revisions []appsv1.ControllerRevision, now time.Time) *observation {
	o := &observation{team: t, now: now, data: map[string][]byte{}}
	for i := range pods {
		if metav1.IsControlledBy(&pods[i], t) {
			o.pods = append(o.pods, pods[i])
		}
	}
	for i := range revisions {
		if r := &revisions[i]; metav1.IsControlledBy(r, t) {
			o.revisions, o.data[r.Name] = append(o.revisions, r), r.Data.Raw
		}
	}
	return o
}

// resolve finds the revision of the templates. A revision that is new is to be stored before a pod refers to it.
func (o *observation) resolve() (*revision.Resolution, error) {
	data, err := revision.EncodeRoles(map[string]*corev1.PodTemplateSpec{"leader": &o.Spec.Leader, "worker": &o.Spec.Worker})
	if err != nil {
		return nil, err
	}
	r := revision.Resolve(revision.Input{Owner: o.Name, Data: data, Have: o.revisions, Current: o.Status.CurrentRevision})
	created := &appsv1.ControllerRevision{ObjectMeta: o.owned(r.Name, nil), Data: runtime.RawExtension{Raw: data}}
	r.Update = cmp.Or(r.Update, created).DeepCopy()
	r.Current = cmp.Or(r.Current, r.Update)
	r.Update.Revision, o.data[r.Name] = r.Number, r.Update.Data.Raw
	return &r, nil
}

// input describes the team to package workload. The slots name the leaders, and a leader names its workers: a creation that
// is sent twice never makes two pods.
func (o *observation) input(r *revision.Resolution) (workload.Input, error) {
	_, unavailable, err := scale.ResolveFenceposts(nil, o.Spec.MaxUnavailable, o.Spec.Replicas)
	if err != nil {
		return workload.Input{}, err
	}
	in := workload.Input{
		Scale:    scale.Input{Now: o.now, Slots: []string{}, Limits: scale.Limits{Replicas: o.Spec.Replicas, Partition: o.Spec.Partition, MaxUnavailable: unavailable}},
		Members:  []workload.Member{{Name: "leader", Role: "leader"}},
		Update:   workload.Revision{Name: r.Name, Data: r.Update.Data.Raw},
		Current:  workload.Revision{Name: r.Current.Name, Data: r.Current.Data.Raw},
		Strategy: workload.InPlaceIfPossible,
		Build:    o.build,
	}
	for name, data := range o.data {
		in.Revisions = append(in.Revisions, workload.Revision{Name: name, Data: data})
	}
	for i := range o.Spec.Replicas {
		in.Scale.Slots = append(in.Scale.Slots, fmt.Sprintf("%s-%d", o.Name, i))
	}
	for i := int32(1); i < o.Spec.Size; i++ {
		in.Members = append(in.Members, workload.Member{Name: fmt.Sprintf("w%d", i), Role: "worker"})
	}
	o.group(&in)
	return in, nil
}

// group sorts the pods into groups. A worker beyond the size is deleted; the rest of its group stays.
func (o *observation) group(in *workload.Input) {
	at := map[string]int{}
	for i := range o.pods {
		pod := &o.pods[i]
		name, member := pod.Labels[groupLabel], pod.Labels[memberLabel]
		if !slices.ContainsFunc(in.Members, func(m workload.Member) bool { return m.Name == member }) {
			if pod.DeletionTimestamp == nil {
				in.First = append(in.First, write.Write{Verb: write.Delete, Object: pod})
			}
			continue
		}
		if _, known := at[name]; !known {
			at[name] = len(in.Instances)
			in.Instances = append(in.Instances, workload.Instance{Name: name})
		}
		group := &in.Instances[at[name]]
		group.Pods = append(group.Pods, workload.Pod{Pod: pod, Member: member})
	}
}

// build makes the pods of creations.
func (o *observation) build(creations []workload.Creation) (all [][]write.Object, _ error) {
	for _, c := range creations {
		templates, err := revision.DecodeRoles(o.data[c.Revision])
		if err != nil {
			return nil, err
		}
		group, template := cmp.Or(c.Instance, c.Slot), templates[c.Member.Role]
		name := group
		if c.Member.Role == "worker" {
			name += "-" + c.Member.Name // never the name of a leader, which ends with a number
		}
		own := labels.Set{groupLabel: group, memberLabel: c.Member.Name, pub.PodRevisionLabelKey: c.Revision}
		pod := &corev1.Pod{ObjectMeta: o.owned(name, labels.Merge(template.Labels, own)), Spec: template.Spec}
		pod.Annotations = template.Annotations
		inplace.EnsureReadinessGate(&pod.Spec)
		all = append(all, []write.Object{pod})
	}
	return all, nil
}

// owned is the metadata of an object of the team.
func (o *observation) owned(name string, more labels.Set) metav1.ObjectMeta {
	owner := metav1.NewControllerRef(o, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Team"})
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: name, Labels: labels.Merge(more, labels.Set{teamLabel: o.Name}), OwnerReferences: []metav1.OwnerReference{*owner}}
}

// current is the current revision after a pass.
func (o *observation) current(r *revision.Resolution, counts workload.Counts) (string, bool) {
	return revision.Promote(revision.Progress{
		Current: o.Status.CurrentRevision, Update: r.Name,
		Replicas: o.Spec.Replicas * max(o.Spec.Size, 1), Existing: counts.Pods, Updated: counts.UpdatedPods,
	})
}

// expired are the revisions to delete.
func (o *observation) expired(r *revision.Resolution) []*appsv1.ControllerRevision {
	live := []string{r.Name, o.Status.CurrentRevision}
	for i := range o.pods {
		live = append(live, o.pods[i].Labels[pub.PodRevisionLabelKey])
	}
	return revision.Trim(o.revisions, live, historyLimit)
}
