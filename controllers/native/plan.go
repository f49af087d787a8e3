package native

import (
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/native"
)

// plan is what one pass is to do. All of it follows from the snapshot.
type plan struct {
	in   workload.Input
	pass *workload.Pass
	// notes are why no update begins; empty where updates may begin.
	notes []note.Note
	// deployment is that of a Deployment; nil for other kinds.
	deployment *native.DeploymentPlan
	// outdated means that an object has changed since the pass read it.
	outdated bool
	// silent means that the set neither gets a status nor events.
	silent bool
}

// retryUnobserved is when to look again at a set whose controller has not observed the template, or whose revision the
// cache lacks. No event announces the latter.
const retryUnobserved = time.Second

// readAnnotations reads what the set or its namespace asks for, and what was reported last.
func (s *snapshot) readAnnotations(namespace *metav1.PartialObjectMetadata) {
	annotations := s.set.GetAnnotations()
	if namespace == nil {
		namespace = &metav1.PartialObjectMetadata{}
	}
	text, wanted := native.Request(s.set, namespace)
	if s.wanted = wanted; wanted {
		_, annotated := annotations[native.RolloutKey]
		s.implied = !annotated
		path := field.NewPath("metadata", "annotations").Key(native.RolloutKey)
		s.rollout, s.faults = native.Parse(text, s.kind, path)
	}
	if text, ok := annotations[StatusKey]; ok {
		s.reported = &Progress{}
		if json.Unmarshal([]byte(text), s.reported) != nil {
			s.reported = &Progress{}
		}
	}
}

// acts reports whether a set is this installation's: its annotation says so, the last status says that updates may be
// under way, or its pods wait for their readiness gate to be opened.
func (o Options) acts(s *snapshot) bool {
	switch {
	case len(s.faults) > 0:
		return o.Class == s.lastClass() // the class cannot be read
	case s.wanted:
		return o.Class == s.rollout.Class
	case s.reported != nil:
		return o.Class == s.reported.Class
	}
	_, held := s.set.GetAnnotations()[native.HoldKey]
	return o.Class == "" && (held || hasGate(s.set))
}

func (s *snapshot) lastClass() string {
	if s.reported == nil {
		return ""
	}
	return s.reported.Class
}

// hasGate reports whether pods of a set have the readiness gate of updates in place.
func hasGate(set any) bool {
	var template *corev1.PodTemplateSpec
	switch of := set.(type) {
	case *appsv1.StatefulSet:
		template = &of.Spec.Template
	case *appsv1.DaemonSet:
		template = &of.Spec.Template
	case *appsv1.Deployment:
		template = &of.Spec.Template
	default:
		return false
	}
	return lifecycle.HasGate(&corev1.Pod{Spec: template.Spec}, kruise.InPlaceUpdateReady)
}

// plan reads nothing but the snapshot and the options.
func (o Options) plan(s *snapshot) (*plan, error) {
	p := &plan{}
	observed := native.Observed{
		Now: s.now, Pods: s.pods(), Revisions: s.Revisions, Installed: o.Installed, Repeats: s.repeats,
	}
	switch set := s.set.(type) {
	case *appsv1.StatefulSet:
		p.in, p.notes = native.StatefulSet(set, observed, s.rollout)
	case *appsv1.DaemonSet:
		p.in, p.notes = native.DaemonSet(set, observed, s.rollout)
	case *appsv1.Deployment:
		observed.ReplicaSets = s.replicaSets
		p.deployment = s.planDeployment(set, observed)
		p.in, p.notes = p.deployment.Input, p.deployment.Notes
	}
	p.in.Ask = o.Ask != nil
	switch {
	case len(s.faults) > 0: // the set is left as it is until its annotation changes
		p.in = native.Finish(p.in)
		p.notes = []note.Note{{
			Level: note.Blocked, Code: reasonInvalid, Object: s.set.GetName(), Text: s.faults.ToAggregate().Error(),
		}}
	case !s.wanted:
		p.in, p.notes = native.Finish(p.in), nil
	}
	// A namespace asks for all of its sets, also for those that their built-in controllers update.
	p.silent = !s.wanted || s.implied && len(p.notes) > 0 && p.notes[0].Code == native.NoteStrategy
	if p.deployment != nil && (len(s.faults) > 0 || !s.wanted) {
		p.deployment = p.deployment.Release(p.notes...)
	}
	var err error
	p.pass, err = workload.Plan(p.in)
	return p, err
}

// patience is how long the built-in controller may take to observe the template of a ReplicaSet.
const patience = 30 * time.Second

func (s *snapshot) planDeployment(d *appsv1.Deployment, o native.Observed) *native.DeploymentPlan {
	p := native.Deployment(d, o, s.rollout)
	if p.IsUnobserved() && !s.unobserved.IsZero() && s.now.Sub(s.unobserved) >= patience {
		return p.Release(note.Note{
			Level: note.Info, Code: native.NoteNotObserved, Object: d.Name,
			Text: "the built-in controller finds another template in the ReplicaSet: its fields may be newer than this build",
		})
	}
	return p
}

// after is when to make another pass although no object changes; 0 for never.
func (p *plan) after(s *snapshot) time.Duration {
	after := passes.Sooner(s.RecheckAfter, p.pass.RequeueAfter())
	for _, n := range p.notes {
		if n.Code == native.NoteNotObserved {
			after = passes.Sooner(after, retryUnobserved)
		}
	}
	if p.outdated {
		after = passes.Sooner(after, retryUnobserved)
	}
	if p.deployment != nil && p.deployment.IsUnobserved() {
		after = passes.Sooner(after, patience)
	}
	return after
}

// inProgress counts the pods whose update in place is under way.
func (p *plan) inProgress() (n int32) {
	for _, pod := range p.pass.Pods() {
		if !inplace.Settled(pod, p.in.Policy) {
			n++
		}
	}
	return n
}

// revisionLabel is the label by which the built-in controllers count.
const revisionLabel = appsv1.ControllerRevisionHashLabelKey
