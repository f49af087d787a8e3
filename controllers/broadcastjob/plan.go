package broadcastjob

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

type (
	pass = driver.Pass[*write.Write]
	step = driver.Step[*write.Write]
)

// plan is what one pass is to do: the decision of package broadcast as writes.
type plan struct {
	*snapshot

	jobs     stored.Kind
	decision broadcast.Pass

	// What follows is known once the writes are answered.

	// current is the job as the last answer left it.
	current *broadcastJob
	deleted []broadcast.Deletion
	created int
	// found are pods of the job that the cache lacks.
	found              []*corev1.Pod
	deleting, creating pass
	after              time.Duration
	events             []note.Note
}

// invalid returns the first fault for which the webhook rejects a job, and for which pods cannot be created as the user
// wants.
func invalid(job *broadcastJob) error {
	for _, fault := range broadcast.Validate(job) {
		long := fault.Field == "metadata.name" && strings.Contains(fault.Detail, "no more than")
		if long || fault.Field == "spec.parallelism" || fault.Field == "spec.template.spec.restartPolicy" {
			return fault
		}
	}
	return nil
}

// newPlan decides what to do. An error is a parallelism that cannot be parsed.
func newPlan(s *snapshot, jobs stored.Kind) (*plan, error) {
	decision, err := broadcast.Plan(s.input)
	if err != nil {
		return nil, err
	}
	after := requeue.Sooner(decision.RequeueAfter, s.recheckAfter)
	return &plan{snapshot: s, jobs: jobs, decision: decision, current: s.job, after: after}, nil
}

// needsObject reports whether the pass does harm where the cache shows an older job: the user may have changed where it
// runs, or when it fails.
func (p *plan) needsObject() bool { return len(p.decision.Delete) > 0 }

// pass returns the writes. A status that ends the job is the first of them, or there is none.
func (p *plan) pass() pass {
	return driver.Sequence(
		step{Plan: p.end, Required: true},
		step{Plan: p.deletePods},
		step{Plan: p.createPods},
		step{Plan: p.report},
		step{Plan: p.deleteJob},
	)
}

func (p *plan) end() (pass, error) {
	if !p.decision.StatusFirst {
		return nil, nil
	}
	return p.writeStatus(p.stalled(p.decision.Status))
}

// deletePods deletes pods that have not changed: one that has may have ended, and is observed again.
func (p *plan) deletePods() (pass, error) {
	deletions := map[*write.Write]broadcast.Deletion{}
	var writes []*write.Write
	for _, d := range p.decision.Delete {
		w := &write.Write{Verb: write.Delete, Object: d.Pod, SameVersion: true}
		deletions[w] = d
		writes = append(writes, w)
	}
	p.deleting = driver.Stage(writes, func(w *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		switch {
		case apierrors.IsConflict(err):
			p.after = requeue.Sooner(p.after, soon)
		case err != nil && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("delete pod %s: %w", w.Object.GetName(), err)
		default:
			p.deleted = append(p.deleted, deletions[w])
			p.announce(note.Note{Code: reasonDeleted, Text: "Deleted pod: " + w.Object.GetName()})
		}
		return nil, nil
	})
	return p.deleting, nil
}

func (p *plan) createPods() (pass, error) {
	p.announceFailure(reasonFailedDelete, "Error deleting", p.deleting.Err())
	var writes []*write.Write
	for _, pod := range p.decision.Create {
		writes = append(writes, &write.Write{Verb: write.Create, Object: pod})
	}
	p.creating = driver.Stage(writes, p.answerCreate)
	return p.creating, nil
}

// answerCreate takes the answer to the creation of a pod. Where its name is taken, the question by whom follows: an
// earlier process may have created the pod a moment ago.
func (p *plan) answerCreate(w *write.Write, answer write.Object, err error) ([]*write.Write, error) {
	name := w.Object.GetName()
	switch {
	case w.Verb == write.Get:
		return nil, p.answerWho(name, answer, err)
	case apierrors.IsAlreadyExists(err):
		return []*write.Write{{Verb: write.Get, Object: w.Object}}, nil
	case err != nil:
		return nil, fmt.Errorf("create pod %s: %w", name, err)
	}
	p.created++
	p.announce(note.Note{Code: reasonCreated, Text: "Created pod: " + name})
	return nil, nil
}

func (p *plan) answerWho(name string, answer write.Object, err error) error {
	have, isPod := answer.(*corev1.Pod)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("create pod %s: its predecessor was still there", name)
	case err != nil:
		return fmt.Errorf("get pod %s: %w", name, err)
	case !isPod || !owned.Controls(p.job, have):
		return fmt.Errorf("create pod %s: a pod of this name exists and is not of the job", name)
	}
	p.found = append(p.found, have)
	p.after = requeue.Sooner(p.after, soon)
	return nil
}

func (p *plan) report() (pass, error) {
	p.announceFailure(reasonFailedCreate, "Error creating", p.creating.Err())
	if p.decision.StatusFirst {
		return nil, nil
	}
	return p.writeStatus(p.stalled(p.decision.Conclude(p.created, p.deleted)))
}

// writeStatus writes the status if it changed, and announces what changes in the life of the job.
func (p *plan) writeStatus(status v1beta1.BroadcastJobStatus) (pass, error) {
	fresh := *p.job
	fresh.Status = status
	return statuspatch.Pass(p.jobs, p.job, &fresh, map[string]any{ // lists print all of them
		"desired": status.Desired, "active": status.Active, "succeeded": status.Succeeded, "failed": status.Failed,
		"phase": status.Phase,
	}, func(answer write.Object) {
		fresh.ResourceVersion = answer.GetResourceVersion()
		p.current = &fresh
		if turn := p.decision.Turn; turn != nil {
			p.announce(*turn)
		}
	})
}

func (p *plan) deleteJob() (pass, error) {
	if !p.decision.DeleteJob {
		return nil, nil
	}
	w := p.jobs.Deletion(p.current)
	w.SameVersion = true
	return driver.Stage([]*write.Write{w}, func(_ *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("delete BroadcastJob: %w", err)
		}
		return nil, nil
	}), nil
}

func (p *plan) announce(n note.Note) { p.events = append(p.events, n) }

// announceFailure announces the first of the errors of a step. In a namespace that is being deleted all pods are
// rejected, as expected.
func (p *plan) announceFailure(reason, what string, err error) {
	parts := failure.Parts(err)
	if len(parts) == 0 || apierrors.HasStatusCause(parts[0], corev1.NamespaceTerminatingCause) {
		return
	}
	text := fmt.Sprintf("%s: %s", what, failure.Brief(parts[0]))
	if more := len(parts) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	p.announce(note.Note{Level: note.Blocked, Code: reason, Text: text})
}

// soon is when to look again at pods that the cache does not show as they are.
const soon = time.Second
