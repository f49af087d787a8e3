package broadcast

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

// Over reports whether a job has ended. One with completion policy Never ends only when it fails.
func Over(job *v1beta1.BroadcastJob) bool {
	if job.Spec.CompletionPolicy.Type == v1beta1.Never {
		return job.Status.Phase == v1beta1.PhaseFailed && hasFailed(job)
	}
	return slices.ContainsFunc(job.Status.Conditions, isEnd)
}

func hasFailed(job *v1beta1.BroadcastJob) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c v1beta1.JobCondition) bool {
		return c.Type == v1beta1.JobFailed && isEnd(c)
	})
}

// isEnd reports whether a condition says that the job has ended.
func isEnd(c v1beta1.JobCondition) bool {
	return c.Status == corev1.ConditionTrue && (c.Type == v1beta1.JobComplete || c.Type == v1beta1.JobFailed)
}

// over tidies up after a job that has ended, and deletes the job when its time has come.
func (in *Input) over() Pass {
	pass := Pass{Status: *in.Job.Status.DeepCopy()}
	for _, pod := range in.sortedPods() {
		if classOf(in.Job, pod) == active && (hasFailed(in.Job) || pod.Spec.NodeName == "") {
			why := note.Note{Code: string(in.Job.Status.Phase), Object: pod.Name, Text: "the job has ended"}
			pass.Delete = append(pass.Delete, Deletion{pod, why, active})
		}
	}
	left, ok := timeToLive(in.Job, in.Now)
	switch {
	case !ok:
	case left <= 0:
		pass.DeleteJob = true
	default:
		pass.RequeueAfter = left
	}
	return pass
}

// startTime is when the job began. A pod may be older than the first status that was written.
func (d *decision) startTime() *metav1.Time {
	started := metav1.NewTime(d.Now)
	for _, pod := range d.Pods {
		if pod != nil && !pod.CreationTimestamp.IsZero() && pod.CreationTimestamp.Before(&started) {
			started = pod.CreationTimestamp
		}
	}
	return &started
}

// deadline returns how long the job may still be active, if there is a limit.
func (d *decision) deadline() (left time.Duration, ok bool) {
	policy := &d.Job.Spec.CompletionPolicy
	if policy.Type == v1beta1.Never || policy.ActiveDeadlineSeconds == nil {
		return 0, false
	}
	return until(d.pass.Status.StartTime.Time, *policy.ActiveDeadlineSeconds, d.Now)
}

// timeToLive returns how long a job that has ended stays, if there is a limit.
func timeToLive(job *v1beta1.BroadcastJob, now time.Time) (left time.Duration, ok bool) {
	policy := &job.Spec.CompletionPolicy
	if policy.Type == v1beta1.Never || policy.TTLSecondsAfterFinished == nil {
		return 0, false
	}
	var ended time.Time
	if t := job.Status.CompletionTime; t != nil {
		ended = t.Time
	} else if i := slices.IndexFunc(job.Status.Conditions, isEnd); i >= 0 {
		ended = job.Status.Conditions[i].LastTransitionTime.Time
	}
	if ended.IsZero() {
		return 0, false
	}
	return until(ended, int64(*policy.TTLSecondsAfterFinished), now)
}

// until returns how long it is from now until some seconds after a time. A number of seconds that no duration holds is
// no limit.
func until(from time.Time, seconds int64, now time.Time) (left time.Duration, ok bool) {
	const most = int64(math.MaxInt64 / time.Second)
	if seconds > most {
		return 0, false
	}
	passed := now.Sub(from)
	limit := time.Duration(max(seconds, 0)) * time.Second
	if passed < 0 && limit > math.MaxInt64+passed { // the clock was set back
		return math.MaxInt64, true
	}
	return limit - passed, true
}

// complete ends a job that ran on every node.
func (d *decision) complete() {
	status := &d.pass.Status
	d.end(v1beta1.PhaseCompleted, v1beta1.JobCondition{
		Type: v1beta1.JobComplete, Reason: string(v1beta1.JobComplete),
		Message: fmt.Sprintf("Job completed, %d pods succeeded, %d pods failed", status.Succeeded, status.Failed),
	})
	d.pass.Turn = &note.Note{
		Code: NoteCompleted,
		Text: fmt.Sprintf("Job %s/%s is completed, %d pods succeeded, %d pods failed",
			d.Job.Namespace, d.Job.Name, status.Succeeded, status.Failed),
	}
}

// fail ends a job. Its active pods are deleted, and count as failed. A pod that has restarted too often stays with its
// log.
func (d *decision) fail(code, why string) {
	status := &d.pass.Status
	status.Failed += status.Active
	status.Active = 0
	d.end(v1beta1.PhaseFailed, v1beta1.JobCondition{
		Type: v1beta1.JobFailed, Reason: string(v1beta1.JobFailed), Message: why,
	})
	turn := blocked(code, "", fmt.Sprintf("Job %s/%s failed: %s", d.Job.Namespace, d.Job.Name, why))
	d.pass.Turn = &turn
}

// end writes the end of the job first, and deletes what it leaves.
func (d *decision) end(phase v1beta1.BroadcastJobPhase, c v1beta1.JobCondition) {
	status := &d.pass.Status
	now := metav1.NewTime(d.Now)
	c.Status, c.LastProbeTime, c.LastTransitionTime = corev1.ConditionTrue, now, now
	status.Conditions = append(slices.DeleteFunc(status.Conditions, func(old v1beta1.JobCondition) bool {
		return old.Type == c.Type
	}), c)
	status.Phase, status.CompletionTime = phase, &now
	d.pass.StatusFirst = true
	d.pass.Create = nil

	ended := *d.Job
	ended.Status = *status
	after := (&Input{Job: &ended, Pods: d.Pods, Nodes: d.Nodes, Now: d.Now}).over()
	for _, deletion := range after.Delete {
		if !slices.ContainsFunc(d.pass.Delete, func(have Deletion) bool { return have.Pod == deletion.Pod }) {
			d.pass.Delete = append(d.pass.Delete, deletion)
		}
	}
	// pods on nodes that do not exist stay active, until they are deleted with their nodes
	if phase == v1beta1.PhaseCompleted {
		for _, deletion := range d.pass.Delete {
			if deletion.class == active {
				status.Active--
			}
		}
	}
	d.pass.RequeueAfter = after.RequeueAfter
	if after.DeleteJob { // once the end is written
		d.pass.RequeueAfter = time.Millisecond
	}
}
