package ephemeraljob

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// maxRefusals bounds the writes of one reconcile that the API server refuses. The next one tries the pods that are
	// left.
	maxRefusals = 64
	// retryRefused is when a pod that has refused is tried again.
	retryRefused = time.Minute
	// soon is when to look again at a pod that is not as the plan has seen it.
	soon = time.Second
)

// refusal is a pod for which the API server refused the containers.
type refusal struct {
	// text is the last answer.
	text    string
	retryAt time.Time
}

// target is a pod that has the containers or gets them.
type target struct {
	pod   *corev1.Pod
	state podState
}

// plan is what there is to do about a job now. In their order: the finalizer of the reference goes, pods get the
// containers, the status is written, and a job whose time has come is deleted.
type plan struct {
	*snapshot

	// targets are the pods of the job, in their order. A job that has ended or is being deleted has none.
	targets []target
	// invalid is why the spec cannot work.
	invalid error
	// turn is how the job ends; nil while the job goes on.
	turn *note.Note
	// deleteJob is set when the time to live of the job has passed.
	deleteJob bool
	// after is when to look again though nothing changes; zero for never.
	after    time.Duration
	whyEmpty string

	// due are the pods to add containers to, in this order. slots is how many more pods may run them.
	due   []*corev1.Pod
	slots int

	// What follows is known once the writes are answered.

	// counts are the targets by state.
	counts map[podState]int32
	// refused are the pods that have refused, for the next pass.
	refused map[types.UID]refusal
	// newlyRefused are the pods that have refused for the first time, with the answers.
	newlyRefused []note.Note
	refusals     int
	failed       []error
}

// over reports whether a job has ended.
func over(job *ephemeralJob) bool { return job.Status.CompletionTime != nil }

func newPlan(s *snapshot) *plan {
	p := &plan{snapshot: s, after: s.recheckAfter, counts: map[podState]int32{}, refused: map[types.UID]refusal{}}
	switch {
	case s.job.DeletionTimestamp != nil:
		return p
	case over(s.job):
		p.expireJob()
		return p
	}
	rule, err := newRule(s.job)
	if p.invalid = failure.Brief(cmp.Or(s.fault, err)); p.invalid != nil {
		return p
	}
	p.survey(rule)
	p.decide()
	return p
}

// finalizers returns those of the job without that of the reference, which would block the deletion, and whether they
// differ from what is stored.
func (p *plan) finalizers() (kept []string, changed bool) {
	kept = slices.DeleteFunc(slices.Clone(p.job.Finalizers), func(f string) bool {
		return f == v1alpha1.EphemeralJobFinalizerKey
	})
	return kept, len(kept) < len(p.job.Finalizers)
}

// expireJob deletes a job that has ended when its time has come.
func (p *plan) expireJob() {
	ttl := ptr.Deref(p.job.Spec.TTLSecondsAfterFinished, v1alpha1.DefaultEphemeralJobTTLSecondsAfterFinished)
	left := passes.Until(p.job.Status.CompletionTime.Time, int64(ttl), p.now)
	p.deleteJob = left <= 0
	p.after = passes.Sooner(p.after, left)
}

// survey finds the targets.
func (p *plan) survey(r *rule) {
	var taken []string
	for _, pod := range p.pods {
		switch state := r.state(pod); state {
		case podUnselected, podInactive:
		case podTaken:
			taken = append(taken, pod.Name)
		case podDue, podWaiting, podRunning, podSucceeded, podFailed:
			p.targets = append(p.targets, target{pod, state})
		}
	}
	slices.SortFunc(p.targets, func(a, b target) int {
		return cmp.Or(a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	p.targets = p.targets[:min(p.wanted(), int32(len(p.targets)))]
	p.whyEmpty = "No pod matches"
	if len(taken) > 0 {
		slices.Sort(taken)
		p.whyEmpty = "Pods have other containers with names of the template: " + failure.Names(taken)
	}
	for _, t := range p.targets {
		p.counts[t.state]++
		if known, ok := p.snapshot.refused[t.pod.UID]; ok && t.state == podDue {
			p.refused[t.pod.UID] = known
		}
	}
}

// decide goes from what ends a job up to what brings it forward.
func (p *plan) decide() {
	matches, ended := int32(len(p.targets)), p.counts[podSucceeded]+p.counts[podFailed]
	if matches > 0 && ended == p.wanted() {
		p.complete()
		return
	}
	if p.job.Spec.Paused {
		return
	}
	if seconds := p.job.Spec.ActiveDeadlineSeconds; seconds != nil {
		left := passes.Until(p.started().Time, *seconds, p.now)
		if left <= 0 {
			p.turn = &note.Note{
				Level: note.Blocked, Code: v1alpha1.EJobReasonDeadlineExceeded,
				Text: fmt.Sprintf("The job was active for longer than its deadline: %d of %d pods have ended",
					ended, max(p.wanted(), matches)),
			}
			return
		}
		p.after = passes.Sooner(p.after, left)
	}
	p.choose()
}

// wanted is how many targets end the job: spec.replicas, or all that exist.
func (p *plan) wanted() int32 {
	return max(ptr.Deref(p.job.Spec.Replicas, int32(len(p.targets))), 0)
}

// started is when the job began.
func (p *plan) started() *metav1.Time {
	return cmp.Or(p.job.Status.StartTime, &metav1.Time{Time: p.now})
}

// complete ends a job for which as many targets as it is for have ended.
func (p *plan) complete() {
	succeeded, failed := p.counts[podSucceeded], p.counts[podFailed]
	if failed == 0 {
		text := fmt.Sprintf("The containers succeeded in %d pods", succeeded)
		p.turn = &note.Note{Code: v1alpha1.EJobReasonJobSucceeded, Text: text}
		return
	}
	text := fmt.Sprintf("The containers failed in %d pods and succeeded in %d: %s", failed, succeeded, p.failedPods())
	p.turn = &note.Note{Level: note.Blocked, Code: v1alpha1.EJobReasonJobFailed, Text: text}
}

func (p *plan) failedPods() string {
	var names []string
	for _, t := range p.targets {
		if t.state == podFailed {
			names = append(names, t.pod.Name)
		}
	}
	return failure.Names(names)
}

// choose chooses the pods that get containers. Pods without a node come after the others, for their containers cannot
// start yet. Pods that have refused a moment ago are left out.
func (p *plan) choose() {
	parallelism := ptr.Deref(p.job.Spec.Parallelism, v1alpha1.DefaultEphemeralJobParallelism)
	p.slots = int(max(int64(parallelism)-int64(p.counts[podRunning])-int64(p.counts[podWaiting]), 0))
	var unbound []*corev1.Pod
	for _, t := range p.targets {
		before := p.refused[t.pod.UID]
		switch {
		case t.state != podDue:
		case before.retryAt.After(p.now):
			if p.slots > 0 {
				p.after = passes.Sooner(p.after, before.retryAt.Sub(p.now))
			}
		case t.pod.Spec.NodeName == "":
			unbound = append(unbound, t.pod)
		default:
			p.due = append(p.due, t.pod)
		}
	}
	p.due = append(p.due, unbound...)
}

// batch returns the additions that fit into the slots that are left: the slot of a pod that refuses goes to the next
// one. It returns nil at the end.
func (p *plan) batch() []*write.Write {
	if len(p.failed) > 0 {
		return nil
	}
	n := max(min(p.slots, len(p.due), maxRefusals-p.refusals), 0)
	writes := make([]*write.Write, 0, n)
	for _, pod := range p.due[:n] {
		writes = append(writes, addition(p.job, pod))
	}
	p.due, p.slots = p.due[n:], p.slots-n
	return writes
}

// added takes the answer to an addition. A failure concerns more than the pod, and ends the batches: the API server is
// overloaded or did not answer.
func (p *plan) added(w *write.Write, err error) {
	name, uid := w.Object.GetName(), w.Object.GetUID()
	switch {
	case err == nil:
		p.counts[podDue]--
		p.counts[podWaiting]++
		delete(p.refused, uid)
	case write.IsOutdated(err):
		p.after = passes.Sooner(p.after, soon)
	case write.IsRefused(err):
		p.slots++
		p.refusals++
		r := refusal{text: failure.BriefText(err.Error()), retryAt: p.now.Add(retryRefused)}
		if _, before := p.refused[uid]; !before {
			p.newlyRefused = append(p.newlyRefused, note.Note{Object: name, Text: r.text})
		}
		p.refused[uid] = r
		p.after = passes.Sooner(p.after, retryRefused)
		if p.refusals >= maxRefusals {
			p.after = time.Millisecond // for the pods that are left
		}
	default:
		p.failed = append(p.failed, fmt.Errorf("add containers to pod %s: %w", name, err))
	}
}
