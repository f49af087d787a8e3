package native

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// HoldKey is the annotation of a Deployment that is held: its spec.paused was set in the write that changed its
// template, and not by its user. The value differs from that of each earlier hold.
const HoldKey = "kruisekit.dev/rollout-hold"

// The codes of notes about a Deployment whose updates do not begin.
const (
	// NoteNotHeld is a change that could have been made in place, and that the built-in controller rolls out: nothing
	// paused the Deployment in the write that changed its template.
	NoteNotHeld = "NotHeld"
	// NoteNotInPlace is a change that is not possible in place.
	NoteNotInPlace = "NotInPlace"
	// NoteReplicaSets is a Deployment that has its pods in several ReplicaSets, or no pods.
	NoteReplicaSets = "ReplicaSets"
)

// DeploymentPlan is one step of the rollout of a Deployment: a pass over its pods, and the writes that follow it.
type DeploymentPlan struct {
	// Input of the pass.
	Input workload.Input
	// Notes are why no update begins; nil where updates may begin.
	Notes []note.Note

	deployment *appsv1.Deployment
	sets       []*appsv1.ReplicaSet
	// active is the ReplicaSet whose pods are updated; nil where no update begins.
	active *appsv1.ReplicaSet
	// marks means that the template of the active ReplicaSet is marked before its pods are updated.
	marks bool
	// ends means that the hold ends at once.
	ends bool
	err  error
}

// Deployment returns what is next in the rollout of a Deployment. While spec.paused is true its controller makes no
// ReplicaSet of a changed template, and goes on to scale the one that has the pods. These are updated in place. Their
// ReplicaSet gets the template when all of them run the change: for the controller it then is the new one.
func Deployment(d *appsv1.Deployment, o Observed, r Rollout) *DeploymentPlan {
	p := &DeploymentPlan{deployment: d, sets: owned(d, o.ReplicaSets)}
	if r.MaxUnavailable == nil {
		r.MaxUnavailable = maxUnavailableOf(d)
	}
	p.Input = o.input(d, &r)
	active := p.activeSets(o)
	if !d.Spec.Paused {
		for _, set := range active {
			if !p.isSame(set, d.Spec.Template) {
				return p.rollsOut(set)
			}
		}
	}
	if len(active) != 1 {
		return p.handOver(note.Info, NoteReplicaSets, fmt.Sprintf("%d ReplicaSets have pods", len(active)))
	}
	from, to := unmarked(&active[0].Spec.Template), withoutHash(&d.Spec.Template)
	if !apiequality.Semantic.DeepEqual(from, to) {
		if why := notInPlace(from, to, &p.Input); why != "" {
			return p.recreates(why, r.PodUpdatePolicy)
		}
	}
	p.active = active[0]
	p.Input.Scale.MinReadySeconds = r.minReady(d.Spec.MinReadySeconds)
	p.roll(o, &r, to)
	in, notes := o.observed(p.Input, d, &d.Spec.Template)
	p.Input, p.Notes = in, notes
	if !p.isSame(p.active, d.Spec.Template) && !isMarked(p.active) {
		p.marks, p.Input.Scale.Updates = !r.Paused, scale.UpdatesPaused
	}
	return p
}

// activeSets returns the ReplicaSets that have pods, and puts all pods into the input.
func (p *DeploymentPlan) activeSets(o Observed) (active []*appsv1.ReplicaSet) {
	var pods []*corev1.Pod
	for _, set := range p.sets {
		pods = append(pods, owned(set, o.Pods)...)
		if set.DeletionTimestamp == nil && (replicasOf(set.Spec.Replicas) > 0 || set.Status.Replicas > 0) {
			active = append(active, set)
		}
	}
	p.Input.Instances = workload.Pods(pods)
	return active
}

// recreates leaves a change that is not possible in place to the built-in controller, or reports it.
func (p *DeploymentPlan) recreates(why string, policy UpdatePolicy) *DeploymentPlan {
	switch {
	case policy == InPlaceOnly:
		return p.refuse(why)
	case !p.IsHeld():
		return p.refuse(why + "; spec.paused is set by a user: resume the rollout, and the built-in controller makes it")
	}
	return p.handOver(note.Info, NoteNotInPlace, "the built-in rolling update makes the change: "+why)
}

// IsHeld reports whether the Deployment is held.
func (p *DeploymentPlan) IsHeld() bool {
	_, ok := p.deployment.Annotations[HoldKey]
	return ok && p.deployment.Spec.Paused
}

// Release returns the plan that begins no update and ends the hold, because of what notes say.
func (p *DeploymentPlan) Release(why ...note.Note) *DeploymentPlan {
	q := *p
	q.Input, q.Notes, q.active, q.ends = Finish(p.Input), why, nil, true
	return &q
}

// rollsOut leaves a ReplicaSet with an older template to the built-in controller.
func (p *DeploymentPlan) rollsOut(set *appsv1.ReplicaSet) *DeploymentPlan {
	why := notInPlace(unmarked(&set.Spec.Template), withoutHash(&p.deployment.Spec.Template), &p.Input)
	if why != "" {
		return p.handOver(note.Waiting, NoteNotInPlace, "the built-in controller rolls out: "+why)
	}
	return p.handOver(note.Waiting, NoteNotHeld, "the built-in controller rolls out a change that is possible in place: "+
		"nothing has paused the Deployment in the write of the change")
}

func (p *DeploymentPlan) handOver(level note.Level, code, text string) *DeploymentPlan {
	return p.Release(note.Note{Level: level, Code: code, Object: p.deployment.Name, Text: text})
}

func (p *DeploymentPlan) refuse(why string) *DeploymentPlan {
	q := p.handOver(note.Blocked, NoteNotInPlace, why)
	q.ends = false
	return q
}

// notInPlace returns why a change is not possible in place; empty where it is.
func notInPlace(from, to *corev1.PodTemplateSpec, in *workload.Input) string {
	if value := to.Annotations[restartedAtKey]; value != "" && value != from.Annotations[restartedAtKey] {
		return textRestart
	}
	if in.Strategy == workload.Recreate {
		return "podUpdatePolicy is " + string(ReCreate)
	}
	if _, err := inplace.Diff(from, to, in.Policy); err != nil {
		return err.Error()
	}
	return ""
}

// roll fills in the pods of the active ReplicaSet and the revisions. A pod has no revision label until it was updated:
// it then was created from the template of a ReplicaSet.
func (p *DeploymentPlan) roll(o Observed, r *Rollout, to *corev1.PodTemplateSpec) {
	in := &p.Input
	in.Instances = workload.Pods(owned(p.active, o.Pods))
	in.Scale.Slots = []string{}
	for _, i := range in.Instances {
		if pod := i.Pods[0]; pod.DeletionTimestamp == nil && !workload.IsFinished(pod.Pod) {
			in.Scale.Slots = append(in.Scale.Slots, i.Name)
		}
	}
	replicas := replicasOf(p.deployment.Spec.Replicas)
	in.Scale.Slots = fillUp(in.Scale.Slots, int(replicas))
	in.Scale.Priority = &kruise.UpdatePriorityStrategy{} // any pod may stay at its revision
	in.Scale.Limits = limits(r, min(int(replicas), mostSlots), scale.RoundDown)
	in.Scale.Limits.Partition = min(max(r.Partition, 0), int32(len(in.Scale.Slots)))

	have := owned(p.deployment, o.Revisions)
	templates := p.templates(have)
	in.Unlabelled = func(pod *corev1.Pod) string {
		for _, t := range templates {
			if t.runs(pod) {
				return t.Label
			}
		}
		return templates[0].Label
	}
	data, err := revision.Encode(to)
	if err != nil {
		p.err = err
		return
	}
	in.Update = named(p.deployment.Name, data, have)
	in.Current = in.Update
	late := func(i workload.Instance) bool { return !in.IsUpdated(i.Pods[0].Pod) }
	if slices.ContainsFunc(in.Instances, late) {
		// A template that the user replaces before its rollout has ended is in no ReplicaSet, and pods run it.
		in.Owner = workload.OwnedBy(p.deployment, appsv1.SchemeGroupVersion.WithKind(string(KindDeployment)), nil)
		p.err = in.SetHistory(workload.History{Data: data, Stored: have})
		in.Update.Label = revision.Short(in.Update.Name)
		in.Current = in.Update
	}
	for _, t := range templates {
		in.Revisions = append(in.Revisions, t.Revision)
	}
}

// stored is the template of a ReplicaSet.
type stored struct {
	workload.Revision

	template *corev1.PodTemplateSpec
}

// templates are those of all ReplicaSets, the active one first.
func (p *DeploymentPlan) templates(have []*appsv1.ControllerRevision) (all []stored) {
	for _, set := range append([]*appsv1.ReplicaSet{p.active}, p.sets...) {
		template := unmarked(&set.Spec.Template)
		if data, err := revision.Encode(template); err == nil {
			all = append(all, stored{named(p.deployment.Name, data, have), template})
		}
	}
	return all
}

// runs reports whether a pod that has not been updated was created from the template. Images tell: webhooks change
// much else.
func (s *stored) runs(pod *corev1.Pod) bool {
	has := imagesOf(&pod.Spec)
	for name, image := range imagesOf(&s.template.Spec) {
		if has[name] != image {
			return false
		}
	}
	return true
}

// imagesOf returns the images of containers and init containers by name.
func imagesOf(spec *corev1.PodSpec) map[string]string {
	images := map[string]string{}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			images[list[i].Name] = list[i].Image
		}
	}
	return images
}

// named is the revision of some data, by the name that it is stored by.
func named(owner string, data []byte, have []*appsv1.ControllerRevision) workload.Revision {
	found := revision.Resolve(revision.Input{Owner: owner, Data: data, Have: have})
	return workload.Revision{Name: found.Name, Label: revision.Short(found.Name), Data: data}
}
