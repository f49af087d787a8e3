package imagepulljob

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/imagejobs"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

type (
	pass = driver.Pass[*write.Write]
	step = driver.Step[*write.Write]
)

// plan is what one pass is to do: what package imagepull decides, as writes.
type plan struct {
	*snapshot

	jobs    stored.Kind
	options Options
	pull    imagepull.Pass

	// What follows is known once the writes are answered.

	// claim is what the keeper of the pull secrets has answered, asking the pass over the nodes, and review what has come
	// of it.
	claim  imagepull.ClaimPlan
	asking pass
	review imagepull.JobPlan
	// reported means that the status is what it should be: the notes are emitted.
	reported bool
	notes    []note.Note
	// refused is why the job cannot run, once the status has it.
	refused string
	// after is when to look again.
	after time.Duration
}

// invalid returns the first fault for which the webhook rejects a job that has its defaults; nil if there is none. Too
// many pull secrets and too long a sandboxConfig are no such faults: takeovers find such jobs, and the plan leaves out
// what is too much and reports it.
func invalid(job *pullJob) error {
	for _, fault := range imagejobs.ValidatePullJob(job) {
		if fault.Field != "spec.pullSecrets" && fault.Field != "spec.sandboxConfig" {
			return fault
		}
	}
	return nil
}

func newPlan(s *snapshot, o Options, jobs stored.Kind) *plan {
	request := imagepull.Request{Job: s.job, Now: s.now, KeepSeconds: o.KeepSeconds}
	return &plan{snapshot: s, jobs: jobs, options: o, pull: imagepull.Pass{Request: request, Nodes: s.nodes}}
}

// pass returns the writes.
func (p *plan) pass() pass {
	switch {
	case p.ended():
		return p.end()
	case p.invalid != nil:
		return driver.Sequence(step{Plan: p.refuse}, step{Plan: p.terminate})
	case p.pull.Wait() > 0:
		p.after = p.pull.Wait()
		return driver.Sequence[*write.Write]()
	}
	// What fails while nodes are asked does not keep the rest from being reported.
	p.asking = driver.Sequence(
		step{Plan: p.hold, Required: true},
		step{Plan: p.claimSecrets, Required: true},
		step{Plan: p.askNodes},
	)
	return driver.Sequence(
		step{Plan: func() (pass, error) { return p.asking, nil }},
		step{Plan: p.report, Required: true},
		step{Plan: p.conclude},
	)
}

// terminate fails the pass: only another spec helps.
func (p *plan) terminate() (pass, error) { return nil, reconcile.TerminalError(p.invalid) }

func (p *plan) isHeld() bool {
	return slices.Contains(p.job.Finalizers, v1beta1.ImagePullJobFinalizerKey)
}

// hold adds the finalizer to a job whose pull secrets are to be copied, so that the copies are released.
func (p *plan) hold() (pass, error) {
	if p.isHeld() || len(p.job.Spec.PullSecrets) == 0 || p.job.Namespace == p.options.SecretNamespace {
		return nil, nil
	}
	return p.writeFinalizers(append(slices.Clone(p.job.Finalizers), v1beta1.ImagePullJobFinalizerKey))
}

// writeFinalizers writes all of them, unless the job has changed.
func (p *plan) writeFinalizers(all []string) (pass, error) {
	w, err := p.jobs.Finalizers(p.job, all)
	if err != nil {
		return nil, err
	}
	return driver.Stage([]*write.Write{w}, func(_ *write.Write, answer write.Object, err error) ([]*write.Write, error) {
		if err == nil {
			p.job.Finalizers, p.job.ResourceVersion = all, answer.GetResourceVersion()
		} else if !apierrors.IsNotFound(err) || !p.ended() {
			return nil, fmt.Errorf("write finalizers: %w", err)
		}
		return nil, nil
	}), nil
}

// keep asks the keeper of the pull secrets for what the job needs: copies, or none once the job has ended.
func (p *plan) keep(answered func(error) error) (pass, error) {
	question := []*write.Write{{Verb: write.Ask, Object: p.job}}
	return driver.Stage(question, func(_ *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		return nil, answered(err)
	}), nil
}

// claimSecrets brings the pull secrets of the job to where nodes may read them.
func (p *plan) claimSecrets() (pass, error) {
	if len(p.job.Spec.PullSecrets) == 0 && !p.isHeld() {
		return nil, nil
	}
	return p.keep(func(err error) error {
		p.pull.Request.Secrets, p.notes = p.claim.References, p.claim.Notes
		if apierrors.IsNotFound(err) || write.IsFinal(err) { // it stays until a user mends it
			p.pull.RefuseSecrets(p.options.SecretNamespace, err)
		}
		return err
	})
}

// askNodes asks as many nodes as may pull at once.
func (p *plan) askNodes() (pass, error) { return &nodes{pull: &p.pull}, nil }

// conclude ends a job that has just completed. One that has failed to ask a node goes on in the next pass.
func (p *plan) conclude() (pass, error) {
	p.job.Status, p.reported = p.review.Status, true
	p.notes, p.after = append(p.notes, p.review.Notes...), p.review.RequeueAfter
	if p.asking.Err() != nil || !p.ended() {
		return nil, nil //nolint:nilerr // the pass over the nodes has the error
	}
	return p.end(), nil
}

// end releases what an ended job holds, and deletes the job when its time has come.
func (p *plan) end() pass {
	p.after = 0
	return driver.Sequence(
		step{Plan: p.releaseSecrets, Required: true},
		step{Plan: p.release, Required: true},
		step{Plan: p.delete},
	)
}

func (p *plan) releaseSecrets() (pass, error) { return p.keep(func(err error) error { return err }) }

// release removes the finalizer.
func (p *plan) release() (pass, error) {
	if !p.isHeld() {
		return nil, nil
	}
	return p.writeFinalizers(slices.DeleteFunc(slices.Clone(p.job.Finalizers), func(f string) bool {
		return f == v1beta1.ImagePullJobFinalizerKey
	}))
}

// delete deletes a job that has been finished for long enough.
func (p *plan) delete() (pass, error) {
	if p.job.DeletionTimestamp != nil {
		return nil, nil
	}
	plan, err := p.pull.Conclude()
	if err != nil || !plan.Delete {
		p.after = max(plan.RequeueAfter, 0)
		return nil, err
	}
	deletion := []*write.Write{p.jobs.Deletion(p.job)}
	return driver.Stage(deletion, func(_ *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("delete finished job: %w", err)
		}
		return nil, nil
	}), nil
}

// attempts at a NodeImage after a conflict.
const attempts = 5

// nodes is the pass over the NodeImages of a job, in rounds: a node that has the image already makes room for the next
// one at once. A write tests only the image that it changes: daemons write the status of a NodeImage more often than a
// slow API server answers. After a conflict the pass reads the NodeImage again, so that no writer undoes what
// another one has written.
type nodes struct {
	pull *imagepull.Pass

	// outcomes and failed are those of the round.
	outcomes map[string]imagepull.Outcome
	failed   map[string]error
	retries  map[string]int
	// refusal stands for all of them.
	refusal error
	broken  error
}

// Next returns the writes of the next round. None follows one in which the API server has failed.
func (n *nodes) Next() []*write.Write {
	for {
		if refusal := n.pull.Answer(n.outcomes); n.refusal == nil {
			n.refusal = refusal
		}
		n.outcomes, n.retries = map[string]imagepull.Outcome{}, map[string]int{}
		if len(n.failed) > 0 || n.broken != nil {
			return nil
		}
		names, err := n.pull.Next()
		if n.broken = err; err != nil || len(names) == 0 {
			return nil
		}
		named := make(map[string]*nodeImage, len(n.pull.Nodes))
		for _, node := range n.pull.Nodes {
			named[node.Name] = node
		}
		var writes []*write.Write
		for _, name := range names {
			writes = append(writes, n.ask(named[name])...)
		}
		if len(writes) > 0 {
			return writes
		}
	}
}

// ask returns the write that asks a node to pull; nothing where the NodeImage asks already, or has no room.
func (n *nodes) ask(node *nodeImage) []*write.Write {
	changed, err := n.pull.Request.For(node.Name).Apply(node)
	switch {
	case err != nil && !errors.Is(err, imagepull.ErrFull): // the next review notes that
		return n.fail(node.Name, err)
	case changed == nil:
		n.outcomes[node.Name] = imagepull.Outcome{Node: node}
		return nil
	}
	if n.retries[node.Name] > 0 { // also where the image that is stored differs from what this process reads of it
		return []*write.Write{stored.Change(node, changed)}
	}
	return []*write.Write{write.JSON(node, "", changes(node, changed)...)}
}

// changes are the operations for the image that differs.
func changes(node, changed *nodeImage) []write.Op {
	const images = "/spec/images"
	if node.Spec.Images == nil {
		return []write.Op{write.Test(images, nil), write.Add(images, changed.Spec.Images)}
	}
	var ops []write.Op
	for name, image := range changed.Spec.Images {
		before, has := node.Spec.Images[name]
		if has && equality.Semantic.DeepEqual(before, image) {
			continue
		}
		path := images + write.Pointer(name)
		if has {
			ops = append(ops, write.Test(path, before))
		} else {
			ops = append(ops, write.Test(path, nil))
		}
		ops = append(ops, write.Add(path, image))
	}
	return ops
}

func (n *nodes) fail(node string, err error) []*write.Write {
	if n.failed == nil {
		n.failed = map[string]error{}
	}
	n.failed[node] = fmt.Errorf("update NodeImage %s: %w", node, err)
	return nil
}

// Answer takes what became of a NodeImage, or what the NodeImage is after a conflict.
func (n *nodes) Answer(_ time.Time, w *write.Write, answer write.Object, err error) []*write.Write {
	name := w.Object.GetName()
	node, _ := answer.(*nodeImage)
	switch {
	case apierrors.IsNotFound(err):
		n.outcomes[name] = imagepull.Outcome{}
	case w.Verb == write.Get && err != nil:
		return n.fail(name, fmt.Errorf("read %s live: %w", name, err))
	case w.Verb == write.Get, apierrors.IsConflict(err) && node != nil:
		return n.ask(node)
	case write.IsOutdated(err) && n.retries[name] < attempts:
		n.retries[name]++
		return []*write.Write{{Verb: write.Get, Object: w.Object}}
	case write.IsFinal(err):
		n.outcomes[name] = imagepull.Outcome{Refusal: fmt.Errorf("update NodeImage %s: %w", name, err)}
	case err != nil:
		return n.fail(name, err)
	default:
		n.outcomes[name] = imagepull.Outcome{Node: node}
	}
	return nil
}

// Err joins what failed.
func (n *nodes) Err() error {
	all := []error{n.refusal, n.broken}
	for _, name := range slices.Sorted(maps.Keys(n.failed)) {
		all = append(all, n.failed[name])
	}
	return errors.Join(all...)
}

// Notes returns none: the review of the nodes has them.
func (*nodes) Notes() []note.Note { return nil }

// RequeueAfter returns 0: the review of the nodes has it.
func (*nodes) RequeueAfter() time.Duration { return 0 }
