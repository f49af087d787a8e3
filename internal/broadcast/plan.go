package broadcast

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
)

// Input is what one pass looks at.
type Input struct {
	// Job has its defaults.
	Job *v1beta1.BroadcastJob
	// Pods are those that the job controls.
	Pods []*corev1.Pod
	// Nodes are all of the cluster.
	Nodes []*corev1.Node
	// Now is the time.
	Now time.Time
	// Bind writes the node into the spec of new pods, past the scheduler.
	Bind bool
}

// Pass is what is to be done about a job now.
type Pass struct {
	// Nodes are the states of all nodes before the pass, by name. A job that has ended has none.
	Nodes []Node
	// Delete are pods to delete.
	Delete []Deletion
	// Create are pods to create, in this order.
	Create []*corev1.Pod
	// DeleteJob is set when the time to live of the job has passed.
	DeleteJob bool
	// Status is the status of the job before the pods of the pass are deleted and created: see Conclude.
	Status v1beta1.BroadcastJobStatus
	// StatusFirst means that Status ends the job, and must be written before anything else.
	StatusFirst bool
	// Turn is what Status changes in the life of the job, for an event once it is written: that it continues, is paused
	// by a failed pod, has completed or failed. Nil for nothing.
	Turn *note.Note
	// Notes are why the pass is as it is.
	Notes []note.Note
	// RequeueAfter is when to look again though nothing changes; zero for never.
	RequeueAfter time.Duration
}

// Conclude returns the status after some pods of the pass were created, and others deleted.
func (p *Pass) Conclude(created int, deleted []Deletion) v1beta1.BroadcastJobStatus {
	status := *p.Status.DeepCopy()
	if p.StatusFirst {
		return status
	}
	status.Active += int32(created)
	for _, deletion := range deleted {
		if deletion.class == active { // others did not count as active before
			status.Active--
		}
	}
	status.Active = max(status.Active, 0)
	return status
}

// Parallelism returns how many pods may be active at once if a number of nodes is desired. A percentage is rounded up.
func Parallelism(spec *v1beta1.BroadcastJobSpec, desired int32) (int32, error) {
	n, err := scale.AmountOr(spec.Parallelism, math.MaxInt32, desired, scale.RoundUp)
	if err != nil {
		return 0, fmt.Errorf("spec.parallelism: %w", err)
	}
	return n, nil
}

// Plan decides what is to be done about a job now. An error is a parallelism that is neither a number nor a percentage.
func Plan(in Input) (Pass, error) {
	switch {
	case in.Job.DeletionTimestamp != nil:
		return Pass{Status: *in.Job.Status.DeepCopy()}, nil
	case Over(in.Job):
		return in.over(), nil
	}
	d := &decision{Input: in, survey: in.look()}
	limit, err := Parallelism(&in.Job.Spec, d.desired)
	if err != nil {
		return Pass{}, err
	}
	d.limit = max(limit, 0) // so that differences of counts do not overflow
	d.begin()
	d.decide()
	return d.pass, nil
}

// decision is a pass that is being made.
type decision struct {
	Input
	*survey

	limit int32
	pass  Pass
}

// begin fills in what does not depend on the decision.
func (d *decision) begin() {
	d.pass.Nodes, d.pass.Notes = d.nodes, d.notes
	status := d.Job.Status.DeepCopy()
	status.Active, status.Succeeded = d.counts[active], d.counts[succeeded]
	status.Failed, status.Desired = d.counts[failed]+d.counts[exceeded], d.desired
	if status.StartTime == nil {
		status.StartTime = d.startTime()
	}
	// A user has made a job that had ended go on, if there are any of these.
	status.CompletionTime = nil
	status.Conditions = slices.DeleteFunc(status.Conditions, isEnd)
	if status.Phase != v1beta1.PhasePaused {
		status.Phase = v1beta1.PhaseRunning
	}
	d.pass.Status = *status
}

// decide goes from what holds a job up to what brings it forward.
func (d *decision) decide() {
	if d.Job.Spec.Paused {
		d.pass.Status.Phase = v1beta1.PhasePaused
		d.explain(note.Note{Code: NotePaused, Text: "spec.paused is set"})
		return
	}
	failures := d.pass.Status.Failed
	policy := d.Job.Spec.FailurePolicy.Type
	if failures > 0 && policy == v1beta1.FailurePolicyTypeFailFast {
		d.fail(NoteFailedPod, fmt.Sprintf("failed pod is found: %s", some(d.failedPods)))
		return
	}
	if failures > 0 && policy == v1beta1.FailurePolicyTypePause {
		why := blocked(NotePaused, "",
			fmt.Sprintf("%d pods failed (%s), delete them to continue", failures, some(d.failedPods)))
		d.explain(why)
		if d.pass.Status.Phase != v1beta1.PhasePaused {
			d.pass.Status.Phase, d.pass.Turn = v1beta1.PhasePaused, &why
		}
		return
	}
	if left, ok := d.deadline(); ok {
		if left <= 0 {
			d.fail(NoteDeadline, "the job was active for longer than its deadline")
			return
		}
		d.pass.RequeueAfter = left
	}
	if d.pass.Status.Phase == v1beta1.PhasePaused {
		d.pass.Status.Phase = v1beta1.PhaseRunning
		d.pass.Turn = &note.Note{Code: NoteContinued, Text: fmt.Sprintf("Job %s/%s continues", d.Job.Namespace, d.Job.Name)}
	}
	d.pass.Delete = d.deletions
	if d.Job.Spec.CompletionPolicy.Type != v1beta1.Never && d.desired > 0 && d.served == d.desired {
		d.complete()
		return
	}
	d.create()
}

func (d *decision) explain(n note.Note) { d.pass.Notes = append(d.pass.Notes, n) }

// create gives due nodes their pods, as many as the parallelism allows.
func (d *decision) create() {
	if d.running > d.limit {
		d.explain(blocked(NoteTooMany, "", fmt.Sprintf("%d pods are active, the parallelism is %d", d.running, d.limit)))
	}
	n := min(len(d.due), int(max(d.limit-d.running-d.leaving, 0)))
	for _, node := range d.due[:n] {
		d.pass.Create = append(d.pass.Create, d.newPod(node))
	}
	if rest := d.due[n:]; len(rest) > 0 {
		d.explain(waiting(NoteLimited, "",
			fmt.Sprintf("%d nodes wait for others, at most %d pods are active: %s", len(rest), d.limit, some(rest))))
	}
}
