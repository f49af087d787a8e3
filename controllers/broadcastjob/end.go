package broadcastjob

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/note"
)

// over reports whether a job has ended. One with completion policy Never ends only when it fails.
func over(job *broadcastJob) bool {
	if job.Spec.CompletionPolicy.Type == v1beta1.Never {
		return job.Status.Phase == v1beta1.PhaseFailed && hasFailed(job)
	}
	return slices.ContainsFunc(job.Status.Conditions, isEnd)
}

func hasFailed(job *broadcastJob) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c v1beta1.JobCondition) bool {
		return c.Type == v1beta1.JobFailed && isEnd(c)
	})
}

// isEnd reports whether a condition says that the job has ended.
func isEnd(c v1beta1.JobCondition) bool {
	return c.Status == corev1.ConditionTrue && (c.Type == v1beta1.JobComplete || c.Type == v1beta1.JobFailed)
}

// tidy deletes what a job that has ended leaves, and the job itself when its time has come. A pod that has restarted
// too often stays with its log.
func (p *plan) tidy(job *broadcastJob) {
	for _, pod := range byName(p.pods) {
		left := classOf(job, pod) == active && (hasFailed(job) || pod.Spec.NodeName == "")
		if left && !slices.ContainsFunc(p.remove, func(m member) bool { return m.Pod == pod }) {
			p.remove = append(p.remove, member{pod, active})
		}
	}
	policy := &job.Spec.CompletionPolicy
	if policy.Type == v1beta1.Never || policy.TTLSecondsAfterFinished == nil {
		return
	}
	var ended time.Time
	if t := job.Status.CompletionTime; t != nil {
		ended = t.Time
	} else if i := slices.IndexFunc(job.Status.Conditions, isEnd); i >= 0 {
		ended = job.Status.Conditions[i].LastTransitionTime.Time
	}
	if ended.IsZero() {
		return
	}
	left := passes.Until(ended, int64(*policy.TTLSecondsAfterFinished), p.now)
	p.deleteJob = left <= 0
	p.after = passes.Sooner(p.after, left)
}

// startTime is when the job began. A pod may be older than the first status that was written.
func (s *snapshot) startTime() *metav1.Time {
	started := metav1.NewTime(s.now)
	for _, pod := range s.pods {
		if !pod.CreationTimestamp.IsZero() && pod.CreationTimestamp.Before(&started) {
			started = pod.CreationTimestamp
		}
	}
	return &started
}

// complete ends a job that ran on every node.
func (p *plan) complete() {
	counts := fmt.Sprintf("%d pods succeeded, %d pods failed", p.status.Succeeded, p.status.Failed)
	p.end(v1beta1.PhaseCompleted, v1beta1.JobComplete, "Job completed, "+counts)
	// pods on nodes that do not exist stay active, until they are deleted with their nodes
	for _, m := range p.remove {
		if m.class == active {
			p.status.Active--
		}
	}
	p.turn = &note.Note{
		Code: "JobComplete", Text: fmt.Sprintf("Job %s/%s is completed, %s", p.job.Namespace, p.job.Name, counts),
	}
}

// fail ends a job. Its active pods are deleted, and count as failed.
func (p *plan) fail(code, why string) {
	p.status.Failed += p.status.Active
	p.status.Active = 0
	p.end(v1beta1.PhaseFailed, v1beta1.JobFailed, why)
	p.turn = &note.Note{
		Level: note.Blocked, Code: code, Text: fmt.Sprintf("Job %s/%s failed: %s", p.job.Namespace, p.job.Name, why),
	}
}

// end writes the end of the job first, and deletes what it leaves.
func (p *plan) end(phase v1beta1.BroadcastJobPhase, kind v1beta1.JobConditionType, message string) {
	now := metav1.NewTime(p.now)
	p.status.Conditions = append(slices.DeleteFunc(p.status.Conditions, func(old v1beta1.JobCondition) bool {
		return old.Type == kind
	}), v1beta1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: string(kind), Message: message,
		LastProbeTime: now, LastTransitionTime: now,
	})
	p.status.Phase, p.status.CompletionTime = phase, &now
	p.ends, p.after = true, p.recheckAfter
	ended := *p.job
	ended.Status = p.status
	p.tidy(&ended)
	if p.deleteJob { // once the end is written
		p.deleteJob, p.after = false, time.Millisecond
	}
}
