package ephemeral

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/note"
)

// MaxRefusals bounds the writes of one pass that the API server refuses. The next pass tries the pods that are left.
const MaxRefusals = 64

// Input is what one pass looks at.
type Input struct {
	// Job is the job as it is stored.
	Job *v1alpha1.EphemeralJob
	// Fault is why the spec cannot be decoded; nil where it was.
	Fault error
	// Pods are those of the namespace that the selector selects. Others are ignored.
	Pods []*corev1.Pod
	// Refused are the pods that refused the containers, as the previous pass has returned them. They may be lost.
	Refused map[types.UID]Refusal
	// Now is the time.
	Now time.Time
}

// Refusal is a pod for which the API server refused the containers.
type Refusal struct {
	// Text is the last answer.
	Text string
	// Attempts counts the writes.
	Attempts int
	// RetryAt is when to try again.
	RetryAt time.Time
}

// Target is a pod that has the containers or gets them.
type Target struct {
	Pod   *corev1.Pod
	State State
}

// Pass is what is to be done about a job now. Its writes add the containers to pods: see package driver. The caller
// drops the finalizer before them, and writes the status and deletes the job after them.
type Pass struct {
	// Targets are the pods of the job before the pass, in their order. A job that has ended or is being deleted has
	// none.
	Targets []Target
	// DropFinalizer is set where the job has the finalizer of the reference, which would block its deletion.
	DropFinalizer bool
	// DeleteJob is set when the time to live of the job has passed.
	DeleteJob bool

	in    Input
	notes []note.Note
	// open is set for a job that goes on.
	open bool
	// invalid is why the spec cannot work.
	invalid error
	// status is the one before the containers of the pass are added.
	status       v1alpha1.EphemeralJobStatus
	turn         *note.Note
	requeueAfter time.Duration
	whyEmpty     string

	// due are the targets to add containers to, in this order. free are the slots that are left.
	due  []*corev1.Pod
	free int
	// What the answers were.
	added, refusals int
	refused         map[types.UID]Refusal
	newlyRefused    []note.Note
	failures        []error
}

// Over reports whether a job has ended.
func Over(job *v1alpha1.EphemeralJob) bool { return job.Status.CompletionTime != nil }

// Plan decides what is to be done about a job now.
func Plan(in Input) *Pass {
	p := &Pass{in: in, status: *in.Job.Status.DeepCopy(), refused: map[types.UID]Refusal{}}
	p.DropFinalizer = slices.Contains(in.Job.Finalizers, v1alpha1.EphemeralJobFinalizerKey)
	switch {
	case in.Job.DeletionTimestamp != nil:
		return p
	case Over(in.Job):
		p.over()
		return p
	}
	p.begin()
	rule, err := NewRule(in.Job)
	if in.Fault != nil {
		err = in.Fault
	}
	if err != nil {
		p.invalid = err
		p.explain(blocked(NoteInvalid, "", brief(err.Error())))
		return p
	}
	p.survey(rule)
	p.decide()
	return p
}

func (p *Pass) explain(n note.Note) { p.notes = append(p.notes, n) }

// over deletes a job that has ended when its time has come.
func (p *Pass) over() {
	ttl := int64(v1alpha1.DefaultEphemeralJobTTLSecondsAfterFinished)
	if n := p.in.Job.Spec.TTLSecondsAfterFinished; n != nil {
		ttl = int64(*n)
	}
	if left := until(p.in.Job.Status.CompletionTime, ttl, p.in.Now); left > 0 {
		p.requeueAfter = left
		return
	}
	p.DeleteJob = true
}

// until returns how long it is from now until some seconds after a time.
func until(from *metav1.Time, seconds int64, now time.Time) time.Duration {
	const most = 100 * 365 * 24 * 3600 // what a duration holds, also where the clock was set back
	return from.Add(time.Duration(min(max(seconds, 0), most)) * time.Second).Sub(now)
}

// survey finds the targets.
func (p *Pass) survey(rule *Rule) {
	var matched []Target
	var taken []string
	for _, pod := range p.in.Pods {
		if pod == nil {
			continue
		}
		switch state := rule.State(pod); state {
		case Unselected, Inactive:
		case Taken:
			taken = append(taken, pod.Name)
		case Due, Waiting, Running, Succeeded, Failed:
			matched = append(matched, Target{pod, state})
		}
	}
	slices.SortFunc(matched, byAge)
	limit := len(matched)
	if n := p.in.Job.Spec.Replicas; n != nil {
		limit = min(limit, int(max(*n, 0)))
	}
	p.Targets = matched[:limit]
	if rest := len(matched) - limit; rest > 0 {
		p.explain(note.Note{Code: NoteBeyond, Text: fmt.Sprintf("%d more pods match, the job is for %d", rest, limit)})
	}
	p.whyEmpty = "No pod matches"
	if len(taken) > 0 {
		slices.Sort(taken)
		p.whyEmpty = "Pods have other containers with names of the template: " + some(taken)
		p.explain(blocked(NoteTaken, "", p.whyEmpty))
	}
	for _, target := range p.Targets {
		p.count(target.State)
		if refusal, known := p.in.Refused[target.Pod.UID]; known && target.State == Due {
			p.refused[target.Pod.UID] = refusal
		}
	}
}

func byAge(a, b Target) int {
	if c := a.Pod.CreationTimestamp.Compare(b.Pod.CreationTimestamp.Time); c != 0 {
		return c
	}
	return cmp.Compare(a.Pod.Name, b.Pod.Name)
}

// decide goes from what ends a job up to what brings it forward.
func (p *Pass) decide() {
	p.open = true
	s := &p.status
	switch {
	case s.Matches > 0 && s.Succeeded+s.Failed == p.wanted():
		p.complete()
		return
	case p.in.Job.Spec.Paused:
		p.explain(note.Note{Code: NotePaused, Text: "spec.paused is set"})
		return
	}
	if seconds := p.in.Job.Spec.ActiveDeadlineSeconds; seconds != nil {
		left := until(s.StartTime, *seconds, p.in.Now)
		if left <= 0 {
			p.expire()
			return
		}
		p.requeueAfter = left
	}
	if s.Matches == 0 {
		p.explain(waiting(NoteEmpty, "", "no pod gets the containers"))
		return
	}
	if missing := p.wanted() - s.Matches; missing > 0 {
		p.explain(waiting(NoteMissing, "", fmt.Sprintf("the job is for %d pods, and waits for %d more", p.wanted(), missing)))
	}
	p.add()
}

// wanted is how many targets end the job: spec.replicas, or all that exist.
func (p *Pass) wanted() int32 {
	if n := p.in.Job.Spec.Replicas; n != nil {
		return max(*n, 0)
	}
	return p.status.Matches
}

// add chooses the pods that get containers. Pods without a node come after the others, for their containers cannot
// start yet, and those that have refused come last.
func (p *Pass) add() {
	parallelism := int32(v1alpha1.DefaultEphemeralJobParallelism)
	if n := p.in.Job.Spec.Parallelism; n != nil {
		parallelism = *n
	}
	p.free = int(max(int64(parallelism)-int64(p.status.Running)-int64(p.status.Waiting), 0))
	var unbound, again []*corev1.Pod
	for _, target := range p.Targets {
		refusal, refused := p.refused[target.Pod.UID]
		switch {
		case target.State != Due:
		case refused && refusal.RetryAt.After(p.in.Now):
			p.explain(blocked(NoteRefused, target.Pod.Name, refusal.Text))
			if p.free > 0 {
				p.requeueAfter = requeue.Sooner(p.requeueAfter, refusal.RetryAt.Sub(p.in.Now))
			}
		case refused:
			again = append(again, target.Pod)
		case target.Pod.Spec.NodeName == "":
			unbound = append(unbound, target.Pod)
		default:
			p.due = append(p.due, target.Pod)
		}
	}
	slices.SortStableFunc(again, func(a, b *corev1.Pod) int {
		return p.refused[a.UID].RetryAt.Compare(p.refused[b.UID].RetryAt)
	})
	p.due = slices.Concat(p.due, unbound, again)
	if rest := len(p.due) - p.free; rest > 0 {
		text := fmt.Sprintf("%d pods wait for others, at most %d run the containers", rest, max(parallelism, 0))
		p.explain(waiting(NoteLimited, "", text))
	}
}
