package uniteddeployment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets/applied"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// FieldManager is the name under which the reconciler applies workloads.
const FieldManager = "kruisekit-uniteddeployment"

type (
	pass = driver.Pass[*write.Write]
	step = driver.Step[*write.Write]
)

// plan is what one pass is to do: what package subsets decides, as writes.
type plan struct {
	*snapshot

	objects stored.Kind
	// decision is nil for a spec of which nothing can be decided.
	decision *subsets.Pass
	// chains are the workloads under way, by the write that was sent.
	chains map[*write.Write]chain

	// What follows is known once the writes are answered.

	labels, creates, deletes, updates pass
	// executed reports whether the pass has come to the workloads.
	executed         bool
	created, deleted int
	// found are workloads that the cache lacks: the answer to an earlier write was lost.
	found []*unstructured.Unstructured
	// written are the last writes of workloads, by subset.
	written map[string]applied.Write
	outcome subsets.Outcome
}

// chain is a workload whose writes follow from each other.
type chain struct {
	target *subsets.Target
	apply  *applied.Apply
	// attempt is the number of the name whose owner is asked for, and named reports whether the name is free.
	attempt int
	named   bool
}

func newPlan(s *snapshot, objects stored.Kind) *plan {
	p := &plan{
		snapshot: s, objects: objects, chains: map[*write.Write]chain{}, written: map[string]applied.Write{},
	}
	if s.invalid == nil {
		p.decision, p.outcome.Revise = subsets.Plan(s.Snapshot)
	}
	return p
}

// needsObject reports whether the pass does harm where the cache shows an older object: the user may have added the
// subset of a surplus workload since, or scaled out.
func (p *plan) needsObject() bool {
	d := p.decision
	return d != nil && len(d.Deletes)+len(d.Updates)+len(d.Evictions) > 0
}

// pass returns the writes. What fails does not keep the status from being written.
func (p *plan) pass() pass {
	if p.invalid != nil {
		return driver.Sequence(step{Plan: p.report, Required: true}, step{Plan: p.terminate})
	}
	return driver.Sequence(step{Plan: p.execute}, step{Plan: p.report})
}

// terminate fails the pass: only another spec helps.
func (p *plan) terminate() (pass, error) { return nil, reconcile.TerminalError(p.invalid) }

// execute returns the writes of the decision: the revision, the labels of pods, on which the allocation was decided,
// then the workloads.
func (p *plan) execute() (pass, error) {
	if p.decision == nil {
		return nil, p.outcome.Revise
	}
	p.recheckAfter = requeue.Sooner(p.recheckAfter, p.decision.RecheckAfter)
	return driver.Sequence(
		step{Plan: func() (pass, error) { return p.decision.Store, nil }, Required: true},
		step{Plan: p.label, Required: true},
		step{Plan: p.provision},
		step{Plan: p.update},
	), nil
}

// label writes which pods are reserved.
func (p *plan) label() (pass, error) {
	var writes []*write.Write
	for _, l := range p.decision.Labels {
		data, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": l.Pod.UID, "labels": map[string]string{kruise.UnitedDeploymentReservedPodKey: l.Value()},
		}})
		if err != nil {
			return nil, fmt.Errorf("encode label: %w", err)
		}
		name := types.NamespacedName{Namespace: l.Pod.Namespace, Name: l.Pod.Name}
		writes = append(writes, &write.Write{
			Verb: write.Patch, Object: stored.MetadataOf(corev1.SchemeGroupVersion.WithKind("Pod"), name),
			Type: types.StrategicMergePatchType, Body: write.Bytes(data),
		})
	}
	p.labels = driver.Stage(writes, func(w *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // the pod is gone
			return nil, nil
		}
		return nil, fmt.Errorf("label pod %s: %w", w.Object.GetName(), err)
	})
	return p.labels, nil
}

// provision creates the workloads that are missing, and deletes those that no subset has.
func (p *plan) provision() (pass, error) {
	p.executed = true
	var questions, deletions []*write.Write
	targets := slices.SortedFunc(slices.Values(p.decision.Creates), func(a, b *subsets.Target) int {
		return cmp.Compare(a.Subset.Name, b.Subset.Name)
	})
	for _, t := range targets {
		questions = append(questions, p.who(chain{target: t}))
	}
	for _, c := range p.decision.Deletes {
		kind := stored.Kind{GVK: c.Kind}
		w := kind.Deletion(c.Object)
		w.Propagation = metav1.DeletePropagationBackground
		deletions = append(deletions, w)
	}
	p.creates = driver.Stage(questions, p.answerCreate)
	p.deletes = driver.Stage(deletions, p.answerDelete)
	return driver.Sequence(
		step{Plan: func() (pass, error) { return p.creates, nil }},
		step{Plan: func() (pass, error) { return p.deletes, nil }},
	), nil
}

// attempts are the names that a workload may have: another owner may have taken the first ones.
const attempts = 3

// who returns the question who has the name of a workload: a server-side apply would write to the workload of another
// owner.
func (p *plan) who(c chain) *write.Write {
	o := c.target.Rendered.DeepCopy()
	o.SetName(subsets.Name(p.object, c.target.Subset.Name, c.attempt))
	c.apply = &applied.Apply{Manager: FieldManager, Rendered: o}
	return p.sends(c, &write.Write{Verb: write.Get, Object: o})
}

func (p *plan) sends(c chain, w *write.Write) *write.Write {
	p.chains[w] = c
	return w
}

// follow returns the write that follows in a chain. The last answer is kept for the next passes.
func (p *plan) follow(c chain, answer write.Object, err error) (*write.Write, error) {
	follows, err := c.apply.Answer(answer, err)
	if follows != nil {
		p.chains[follows] = c
	}
	if o := c.apply.Stored; o != nil {
		p.written[c.target.Subset.Name] = c.target.Write.Answered(o.GetUID(), subsets.Lacking(o, c.target.Rendered))
	}
	return follows, err
}

// answerCreate creates the workload of a subset once its name is known to be free.
func (p *plan) answerCreate(w *write.Write, answer write.Object, err error) ([]*write.Write, error) {
	c := p.chains[w]
	follows, err := p.create(c, answer, err)
	switch {
	case err != nil:
		return nil, fmt.Errorf("create subset %s: %w", c.target.Subset.Name, err)
	case follows != nil:
		return []*write.Write{follows}, nil
	}
	p.created++
	return nil, nil
}

func (p *plan) create(c chain, answer write.Object, err error) (*write.Write, error) {
	have, found := answer.(*unstructured.Unstructured)
	switch {
	case c.named:
		return p.follow(c, answer, err)
	case apierrors.IsNotFound(err):
		c.named = true
		return p.sends(c, c.apply.Begin()), nil
	case err != nil:
		return nil, err
	case found && owned.Controls(p.object, have):
		p.found = append(p.found, have)
		return nil, nil
	}
	if c.attempt++; c.attempt == attempts {
		return nil, fmt.Errorf("the name %s and its alternatives belong to other objects", c.target.Rendered.GetName())
	}
	return p.who(c), nil
}

// answerDelete counts the deletions. A conflict means that another workload has taken the name.
func (p *plan) answerDelete(w *write.Write, _ write.Object, err error) ([]*write.Write, error) {
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		kind := w.Object.GetObjectKind().GroupVersionKind().Kind
		return nil, fmt.Errorf("delete %s %s: %w", kind, w.Object.GetName(), err)
	}
	p.deleted++
	return nil, nil
}

// update writes the workloads that differ, deletes the pods that keep an update from going on, and trims the revisions.
func (p *plan) update() (pass, error) {
	var writes []*write.Write
	for _, t := range p.decision.Updates {
		uid := t.Child.Object.GetUID()
		c := chain{target: t, apply: &applied.Apply{Manager: FieldManager, Rendered: t.Rendered.DeepCopy()}}
		c.apply.Rendered.SetUID(uid)
		begin := c.apply.Begin
		if p.Known.Writes[t.Subset.Name].UID != uid {
			begin = c.apply.Inherit
		}
		writes = append(writes, p.sends(c, begin()))
	}
	p.updates = driver.Sequence(
		step{Plan: func() (pass, error) { return driver.Stage(writes, p.answerUpdate), nil }},
		step{Plan: p.evict},
		step{Plan: p.trim},
	)
	return p.updates, nil
}

func (p *plan) answerUpdate(w *write.Write, answer write.Object, err error) ([]*write.Write, error) {
	c := p.chains[w]
	follows, err := p.follow(c, answer, err)
	switch {
	case err != nil:
		return nil, fmt.Errorf("update subset %s: %w", c.target.Subset.Name, err)
	case follows != nil:
		return []*write.Write{follows}, nil
	}
	return nil, nil
}

func (p *plan) evict() (pass, error) {
	evictions := write.Deletions(p.decision.Evictions)
	return driver.Stage(evictions, func(_ *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}), nil
}

func (p *plan) trim() (pass, error) {
	live := []string{p.decision.Current, p.decision.Update}
	for _, child := range p.Children {
		live = append(live, child.Revision)
	}
	surplus := revision.Trim(p.decision.Store.Stored(p.Revisions), live, *p.object.Spec.RevisionHistoryLimit)
	return driver.Writes(write.Deletions(surplus)...), nil
}
