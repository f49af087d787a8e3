package native

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// The codes of notes about a set whose updates do not begin.
const (
	// NoteNotObserved waits for the built-in controller to observe the template, or for its revision to be read.
	NoteNotObserved = "TemplateNotObserved"
	// NoteStrategy is a set whose updateStrategy does not leave the update of its pods to this package.
	NoteStrategy = "UpdateStrategy"
	// NoteTemplate is a set whose template has the annotation in which a pod keeps its next revision.
	NoteTemplate = "PendingRevisionInTemplate"
)

// Observed is what the built-in controller has made of a set. Objects of other owners are left out, so that lists may
// be those of a selector.
type Observed struct {
	// Now is the time of the observation.
	Now time.Time
	// Pods and Revisions that exist.
	Pods      []*corev1.Pod
	Revisions []*appsv1.ControllerRevision
	// ReplicaSets of a Deployment. Its pods are those of the ReplicaSets, its Revisions those that this package stores.
	ReplicaSets []*appsv1.ReplicaSet
	// Installed is what the cluster offers; the zero value is nothing. Resize is the default of Rollout.Resources.
	Installed inplace.Installation
	// Repeats are what Pass.Repeats returned after the pass before.
	Repeats workload.Repeats
}

// StatefulSet returns the input of a pass over the pods of a StatefulSet, and why no update begins; nil where updates
// may begin.
func StatefulSet(set *appsv1.StatefulSet, o Observed, r Rollout) (workload.Input, []note.Note) {
	in := o.input(set, &r)
	in.Scale.Slots = slotsOf(set)
	in.Scale.MinReadySeconds = r.minReady(set.Spec.MinReadySeconds)
	in.Scale.Limits = limits(&r, len(in.Scale.Slots), scale.RoundDown)
	for _, rev := range owned(set, o.Revisions) {
		stored := workload.Revision{Name: rev.Name, Data: rev.Data.Raw}
		in.Revisions = append(in.Revisions, stored)
		if rev.Name == set.Status.UpdateRevision && set.Status.ObservedGeneration >= set.Generation {
			in.Update = stored
		}
	}
	in.Current = in.Update
	rolling, why := vehicle(set)
	if why != "" {
		return o.handOver(in, set, why)
	}
	if rolling && in.Strategy == workload.InPlaceIfPossible {
		in.Strategy = workload.InPlaceOnly // another pod would come back at the old revision
	}
	if rolling && in.Strategy == workload.Recreate {
		const why = "podUpdatePolicy ReCreate needs updateStrategy OnDelete: with RollingUpdate and a partition, " +
			"another pod has the old revision"
		return o.handOver(in, set, why)
	}
	restart(&in, &set.Spec.Template, owned(set, o.Revisions), r.PodUpdatePolicy)
	return o.observed(in, set, &set.Spec.Template)
}

// DaemonSet returns the input of a pass over the pods of a DaemonSet, and why no update begins; nil where updates may
// begin.
func DaemonSet(set *appsv1.DaemonSet, o Observed, r Rollout) (workload.Input, []note.Note) {
	in := o.input(set, &r)
	for _, i := range in.Instances {
		in.Scale.Slots = append(in.Scale.Slots, i.Name)
	}
	in.Scale.Slots = fillUp(in.Scale.Slots, int(set.Status.DesiredNumberScheduled)) // nodes without their pod
	in.Scale.Priority = &kruise.UpdatePriorityStrategy{}                            // any pod may stay at its revision
	in.Scale.MinReadySeconds = r.minReady(set.Spec.MinReadySeconds)
	in.Scale.Limits = limits(&r, len(in.Scale.Slots), scale.RoundUp)
	have := owned(set, o.Revisions)
	for _, rev := range have {
		in.Revisions = append(in.Revisions, hashed(rev))
	}
	revision.Sort(have)
	if data, err := revision.Encode(&set.Spec.Template); err == nil && set.Status.ObservedGeneration >= set.Generation &&
		len(have) > 0 && sameKnown(have[len(have)-1].Data.Raw, data) {
		in.Update = hashed(have[len(have)-1])
	}
	in.Current = in.Update
	if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
		return o.handOver(in, set, "updateStrategy is "+string(set.Spec.UpdateStrategy.Type)+
			": the built-in controller updates the pods; set OnDelete")
	}
	restart(&in, &set.Spec.Template, have, r.PodUpdatePolicy)
	return o.observed(in, set, &set.Spec.Template)
}

// sameKnown compares revisions without the fields that the types lack: the set was decoded without these, and the
// built-in controller has stored them.
func sameKnown(a, b []byte) bool {
	x, err := revision.Decode(a)
	if err != nil {
		return false
	}
	y, err := revision.Decode(b)
	if err != nil {
		return false
	}
	delete(x.Annotations, revision.UnknownFieldsKey)
	delete(y.Annotations, revision.UnknownFieldsKey)
	return revision.Same(x, y)
}

// hashed is a revision whose pods have its hash in their label.
func hashed(rev *appsv1.ControllerRevision) workload.Revision {
	label := rev.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
	if label == "" {
		label = revision.Short(rev.Name)
	}
	return workload.Revision{Name: rev.Name, Label: label, Data: rev.Data.Raw}
}

// input is what both kinds have in common.
func (o *Observed) input(set metav1.Object, r *Rollout) workload.Input {
	o.Installed.Resize = r.Resources == ResourcesInPlace || r.Resources == "" && o.Installed.Resize
	in := workload.Input{
		// The built-in controller creates pods, and deletes those that have finished or are too many.
		Scale:     scale.Input{Now: o.Now, Slots: []string{}, UpdateOnly: true, UnavailableFirst: true},
		Instances: workload.Pods(owned(set, o.Pods)),
		Strategy:  workload.InPlaceIfPossible, GraceSeconds: r.GracePeriodSeconds, Policy: o.Installed.Policy(),
		Evict: true, KeepState: true, IgnoreMarks: true, Repeats: o.Repeats,
	}
	in.Policy.Relabel = inplace.RelabelLast // the built-in controller counts by the label
	switch r.PodUpdatePolicy {
	case ReCreate:
		in.Strategy = workload.Recreate
	case InPlaceOnly:
		in.Strategy = workload.InPlaceOnly
	}
	if r.Paused {
		in.Scale.Updates = scale.UpdatesPaused
	}
	return in
}

func limits(r *Rollout, slots int, rounding scale.Rounding) scale.Limits {
	n := int32(slots)
	return scale.Limits{Partition: min(max(r.Partition, 0), n), MaxUnavailable: r.maxUnavailable(n, rounding)}
}

// owned returns the objects that a set controls.
func owned[T metav1.Object](set metav1.Object, objects []T) []T {
	return slices.DeleteFunc(slices.Clone(objects), func(o T) bool { return !metav1.IsControlledBy(o, set) })
}

// mostSlots bounds the memory that a typing error in the number of replicas takes.
const mostSlots = 100_000

// slotsOf are the names of the wanted pods, in the order of their ordinals.
func slotsOf(set *appsv1.StatefulSet) []string {
	start := int32(0)
	if set.Spec.Ordinals != nil {
		start = set.Spec.Ordinals.Start
	}
	slots := []string{}
	for k := range min(max(replicasOf(set.Spec.Replicas), 0), mostSlots) {
		slots = append(slots, fmt.Sprintf("%s-%d", set.Name, int64(start)+int64(k)))
	}
	return slots
}

// fillUp adds slots without an instance until there are n. No pod has such a name.
func fillUp(slots []string, n int) []string {
	for k := len(slots); k < min(n, mostSlots); k++ {
		slots = append(slots, "missing "+strconv.Itoa(k))
	}
	return slots
}

// vehicle reports whether the strategy of a StatefulSet is RollingUpdate with a partition that keeps all pods, and why
// it does not leave the pods to this package; empty where it does.
func vehicle(set *appsv1.StatefulSet) (rolling bool, why string) {
	strategy := set.Spec.UpdateStrategy
	switch strategy.Type {
	case appsv1.OnDeleteStatefulSetStrategyType:
		return false, ""
	case appsv1.RollingUpdateStatefulSetStrategyType, "":
	default: // Recreate of Kubernetes 1.37
		return true, "updateStrategy is " + string(strategy.Type) + ": the built-in controller updates the pods; set OnDelete"
	}
	partition, replicas := int32(0), replicasOf(set.Spec.Replicas)
	if strategy.RollingUpdate != nil {
		partition = ptr.Deref(strategy.RollingUpdate.Partition, 0)
	}
	if partition < replicas || partition == 0 {
		return true, fmt.Sprintf("updateStrategy is RollingUpdate with partition %d, below the %d replicas: the built-in "+
			"controller updates the pods; set OnDelete or a partition of 2147483647", partition, replicas)
	}
	return true, ""
}

// observed returns the input, unless the template cannot be rolled out or its revision is not known yet.
func (*Observed) observed(
	in workload.Input, set metav1.Object, template *corev1.PodTemplateSpec,
) (workload.Input, []note.Note) {
	if _, ok := template.Annotations[kruise.PendingRevisionKey]; ok {
		// Each new pod would count as one that is about to leave its revision.
		in.Scale.Updates, in.Policy.Relabel = scale.UpdatesPaused, inplace.RelabelFirst
		return in, []note.Note{{
			Level: note.Blocked, Code: NoteTemplate, Object: set.GetName(),
			Text: "the template must not have the annotation " + kruise.PendingRevisionKey,
		}}
	}
	if in.Update.Name != "" {
		return in, nil
	}
	in.Scale.Updates = scale.UpdatesPaused
	return in, []note.Note{{
		Level: note.Waiting, Code: NoteNotObserved, Object: set.GetName(),
		Text: "the built-in controller has not observed the template yet",
	}}
}

// handOver returns the input that begins no update, and ends those that are under way. The built-in controller
// recreates each pod whose label is old: the label changes as soon as the containers run the change.
func (*Observed) handOver(in workload.Input, set metav1.Object, why string) (workload.Input, []note.Note) {
	return Finish(in), []note.Note{{Level: note.Blocked, Code: NoteStrategy, Object: set.GetName(), Text: why}}
}

// Finish returns an input of this package that begins no update, and ends those that are under way, as for a set that
// another controller updates from now on.
func Finish(in workload.Input) workload.Input {
	in.Scale.Updates, in.Policy.Relabel = scale.UpdatesPaused, inplace.RelabelDone
	return in
}

// restartedAtKey is the annotation of a template in which kubectl rollout restart asks for new pods.
const restartedAtKey = "kubectl.kubernetes.io/restartedAt"

const textRestart = "cannot be restarted in place: metadata.annotations[" + restartedAtKey + "] asks for another pod"

// restart has the pods recreated that are older than the restart that the template asks for. The restart is as old as
// the first revision that has it: the API server sets that time and the age of pods, the value comes from the clock of
// a user. By its age a pod that came back at an old revision is known, too: it goes to the newest one in place.
func restart(in *workload.Input, template *corev1.PodTemplateSpec, have []*appsv1.ControllerRevision, p UpdatePolicy) {
	value := template.Annotations[restartedAtKey]
	if value == "" || !slices.ContainsFunc(in.Instances, func(i workload.Instance) bool {
		return i.Pods[0].Annotations[restartedAtKey] != value
	}) {
		return
	}
	var since *metav1.Time
	for _, rev := range have {
		t, err := revision.Decode(rev.Data.Raw)
		if err == nil && t.Annotations[restartedAtKey] == value && (since == nil || rev.CreationTimestamp.Before(since)) {
			since = &rev.CreationTimestamp
		}
	}
	for k := range in.Instances {
		i := &in.Instances[k]
		if pod := i.Pods[0]; pod.Annotations[restartedAtKey] == value || !pod.CreationTimestamp.Before(since) {
			continue
		}
		if p == InPlaceOnly {
			i.NotInPlace = textRestart
		} else {
			i.Recreate = true // also where the strategy has another pod come back at the old revision
		}
	}
}
