package broadcastjob

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what there is to do about a job now. In their order: pods are deleted and created, the status is written, and
// a job whose time has come is deleted. The end of a job is written first.
type plan struct {
	*snapshot
	*survey

	// limit is how many pods may be active.
	limit int32
	// remove are pods to delete, and create those to create, in this order.
	remove []member
	create []*corev1.Pod
	// ends means that the status ends the job, and must be stored before anything else is done.
	ends bool
	// deleteJob is set when the time to live of the job has passed.
	deleteJob bool
	// turn is what the status changes in the life of the job, for an event once the status is stored: the job continues,
	// is paused by a failed pod, has completed or failed. Nil for nothing.
	turn *note.Note

	// What follows changes with the answers.

	// status counts the pods as the answers have left them.
	status v1beta1.BroadcastJobStatus
	after  time.Duration
	events []note.Note
}

// invalid returns the first fault for which the webhook rejects a job, and for which pods cannot be created as the user
// wants.
func invalid(job *broadcastJob) error {
	for _, fault := range validation.BroadcastJob(job) {
		long := fault.Field == "metadata.name" && strings.Contains(fault.Detail, "no more than")
		if long || fault.Field == "spec.parallelism" || fault.Field == "spec.template.spec.restartPolicy" {
			return fault
		}
	}
	return nil
}

func newPlan(s *snapshot) *plan {
	p := &plan{snapshot: s, survey: &survey{}, status: *s.job.Status.DeepCopy(), after: s.recheckAfter}
	switch {
	case s.job.DeletionTimestamp != nil:
		return p
	case over(s.job):
		p.tidy(s.job)
		return p
	}
	p.survey = s.look()
	if limit, err := validation.BroadcastParallelism(&s.job.Spec, p.desired); err == nil { // else the job is invalid
		p.limit = max(limit, 0) // so that differences of counts do not overflow
	}
	p.count()
	p.decide()
	return p
}

// count fills in the status what does not depend on the decision.
func (p *plan) count() {
	status := &p.status
	status.Active, status.Succeeded = p.counts[active], p.counts[succeeded]
	status.Failed, status.Desired = p.counts[failed]+p.counts[exceeded], p.desired
	if status.StartTime == nil {
		status.StartTime = p.startTime()
	}
	// A user has made a job that had ended go on, if there are any of these.
	status.CompletionTime = nil
	status.Conditions = slices.DeleteFunc(status.Conditions, isEnd)
	if status.Phase != v1beta1.PhasePaused {
		status.Phase = v1beta1.PhaseRunning
	}
}

// decide goes from what holds a job up to what brings it forward.
func (p *plan) decide() {
	failures, policy, completion := p.status.Failed, p.job.Spec.FailurePolicy.Type, &p.job.Spec.CompletionPolicy
	switch {
	case p.job.Spec.Paused:
		p.status.Phase = v1beta1.PhasePaused
		p.explain(note.Info, notePaused, "", "spec.paused is set")
		return
	case failures > 0 && policy == v1beta1.FailurePolicyTypeFailFast:
		p.fail("FailedPodFound", "failed pod is found: "+failure.Names(p.failedPods))
		return
	case failures > 0 && policy == v1beta1.FailurePolicyTypePause:
		p.explain(note.Blocked, notePaused, "", "%d pods failed (%s), delete them to continue",
			failures, failure.Names(p.failedPods))
		if p.status.Phase != v1beta1.PhasePaused {
			p.status.Phase, p.turn = v1beta1.PhasePaused, &p.notes[len(p.notes)-1]
		}
		return
	}
	if seconds := completion.ActiveDeadlineSeconds; seconds != nil && completion.Type != v1beta1.Never {
		left := passes.Until(p.status.StartTime.Time, *seconds, p.now)
		if left <= 0 {
			p.fail("DeadlineExceeded", "the job was active for longer than its deadline")
			return
		}
		p.after = passes.Sooner(p.after, left)
	}
	if p.status.Phase == v1beta1.PhasePaused {
		p.status.Phase = v1beta1.PhaseRunning
		p.turn = &note.Note{Code: "Continue", Text: fmt.Sprintf("Job %s/%s continues", p.job.Namespace, p.job.Name)}
	}
	p.remove = p.misplaced
	if completion.Type != v1beta1.Never && p.desired > 0 && p.served == p.desired {
		p.complete()
		return
	}
	p.serve()
}

// serve gives due nodes their pods, as many as the parallelism allows.
func (p *plan) serve() {
	if p.running > p.limit {
		p.explain(note.Blocked, noteTooMany, "", "%d pods are active, the parallelism is %d", p.running, p.limit)
	}
	n := min(len(p.due), int(max(p.limit-p.running-p.leaving, 0)))
	for _, node := range p.due[:n] {
		p.create = append(p.create, p.newPod(node))
	}
}

// deletions returns the writes for the pods to delete. A pod that has changed may have ended, and stays.
func (p *plan) deletions() []*write.Write {
	writes := make([]*write.Write, 0, len(p.remove))
	for _, m := range p.remove {
		writes = append(writes, &write.Write{Verb: write.Delete, Object: m.Pod, SameVersion: true})
	}
	return writes
}

// deleted takes the answer to the deletion of a pod, and returns what failed.
func (p *plan) deleted(m member, err error) error {
	switch {
	case apierrors.IsConflict(err):
		p.after = passes.Sooner(p.after, soon)
		return nil
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("delete pod %s: %w", m.Name, err)
	}
	if m.class == active && !p.ends { // others did not count as active before
		p.status.Active = max(p.status.Active-1, 0)
	}
	p.announce("", reasonDeleted, "Deleted pod: "+m.Name)
	return nil
}

// created takes the answer to the creation of a pod, and returns what failed. A pod that existed is one that the cache
// does not show.
func (p *plan) created(name string, existed bool, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("create pod %s: %w", name, err)
	case existed:
		p.after = passes.Sooner(p.after, soon)
		return nil
	}
	p.status.Active++
	p.announce("", reasonCreated, "Created pod: "+name)
	return nil
}

func (p *plan) announce(level note.Level, code, text string) {
	p.events = append(p.events, note.Note{Level: level, Code: code, Text: text})
}

// announceFailure announces the first of some errors. In a namespace that is being deleted all pods are rejected, as
// expected.
func (p *plan) announceFailure(reason, what string, err error) {
	parts := failure.Parts(err)
	if len(parts) == 0 || apierrors.HasStatusCause(parts[0], corev1.NamespaceTerminatingCause) {
		return
	}
	text := fmt.Sprintf("%s: %s", what, failure.Brief(parts[0]))
	if more := len(parts) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	p.announce(note.Blocked, reason, text)
}

// soon is when to look again at pods that the cache does not show as they are.
const soon = time.Second
