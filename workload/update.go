package workload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// update moves a pod to the target: in place where the strategy and the change allow it, else by another pod.
func (p *Pass) update(i *instance, m *member) *Write {
	if w, waits := p.goAhead(i, m); waits {
		return w
	}
	target := p.target()
	if target.matches(p.in.revisionOf(m.pod)) {
		return nil
	}
	if p.in.Strategy == Recreate || i.Recreate {
		return p.recreate(i, m, target)
	}
	if m.child != nil {
		return p.updateChild(i, m, target)
	}
	if i.NotInPlace != "" {
		return p.blocked(i, m, target, errors.New(i.NotInPlace))
	}
	change, err := p.changes.of(p.in.revisionOf(m.pod), target, p.role(m))
	if err != nil {
		return p.blocked(i, m, target, err)
	}
	return p.beginUpdate(i, m, change, target)
}

// beginUpdate returns the next write of an update in place, which a hook may hold.
func (p *Pass) beginUpdate(i *instance, m *member, change *inplace.Change, target *Revision) *Write {
	if w, held := p.beforeUpdate(i, m); held {
		return w
	}
	return p.change(i, m, change, target)
}

// beforeUpdate returns the next write of the hook that holds a pod before its update, and reports whether one does.
func (p *Pass) beforeUpdate(i *instance, m *member) (w *Write, held bool) {
	s := p.situation(i, m)
	s.AtTarget = false
	switch verdict, move := lifecycle.BeforeUpdate(s); verdict {
	case lifecycle.Wait:
		return p.move(i, m, move), true
	case lifecycle.Stop:
		return p.refuse(i, m, p.errState(m.pod)), true
	}
	return nil, false
}

// blocked deals with a change that is not possible in place.
func (p *Pass) blocked(i *instance, m *member, target *Revision, why error) *Write {
	if p.in.Strategy == InPlaceOnly {
		p.refrain(i)
		p.fail(Failure{Object: m.pod.Name, NotInPlace: true, Err: why})
		return nil
	}
	p.note(note.Info, NoteNotInPlace, m.pod.Name, why.Error())
	return p.recreate(i, m, target)
}

// change returns the next write of an update in place that begins.
func (p *Pass) change(i *instance, m *member, change *inplace.Change, target *Revision) *Write {
	u := inplace.Update{
		Pod: m.pod, Change: change, Revision: target.label(), GraceSeconds: p.in.GraceSeconds,
		TakeOut: p.isGroup() && p.in.Group.Traffic == TrafficTogether,
		Labels:  map[string]string{}, Annotations: map[string]string{},
	}
	if !p.keepsState(change) {
		u.Labels[p.in.Policy.Keys.LifecycleStateKey()] = string(p.stateWhileUpdated(m.pod))
		u.Annotations[p.in.Policy.Keys.LifecycleTimestampKey()] = p.now.Format(time.RFC3339)
	}
	if p.in.RevisionLabels != nil {
		maps.Copy(u.Labels, p.in.RevisionLabels(target.Name))
	}
	action, err := inplace.Next(u, p.in.Policy, p.now)
	if err != nil {
		return p.refuse(i, m, err)
	}
	p.explain(action)
	switch action.Verdict {
	case inplace.Recreate:
		return p.recreate(i, m, target)
	case inplace.Write:
		w := &Write{Write: *action.Write, Action: ActionUpdate, Revision: target.Name}
		if w.Subresource == write.Status {
			w.Action = ActionUnready
		}
		if u.GraceSeconds > 0 && w.Subresource == write.Main {
			p.wake(time.Duration(u.GraceSeconds) * time.Second)
		}
		return w
	}
	return nil
}

// recreate has a pod replaced: slots by deleting it, else by a mark, under which the next plan deletes it.
func (p *Pass) recreate(i *instance, m *member, target *Revision) *Write {
	if p.in.Scale.Slots != nil {
		i.task = taskDelete
		return p.delete(i, m)
	}
	if p.in.isMarked(m.pod) || i.marked {
		return nil
	}
	i.marked = true
	return p.mark(m, target.Name)
}

// mark marks a pod to be deleted.
func (p *Pass) mark(m *member, target string) *Write {
	mark := map[string]*string{p.in.Policy.Keys.SpecifiedDeleteKey(): ptr.To("true")}
	ops := append(write.TestUID(m.object()), write.SetLabels(m.object(), mark)...)
	return &Write{Write: *write.JSON(m.object(), write.Main, ops...), Action: ActionMark, Revision: target}
}

// target is the revision that the plan moves instances to.
func (p *Pass) target() *Revision {
	if p.result.Backward {
		return &p.in.Current
	}
	return &p.in.Update
}

// Ahead is what comes before the update of a pod: writes of objects next to the pod, as its volume claims. The instance
// spends of the budget while they are made.
type Ahead struct {
	// Writes are made first, in their order. The update waits then for an observation that shows them made.
	Writes []write.Write
	// Wait is why the update waits; empty where it may begin.
	Wait string
	// Err is why the update is not possible. Other instances take the turn of this one.
	Err error
}

func (a *Ahead) isNothing() bool { return len(a.Writes) == 0 && a.Wait == "" && a.Err == nil }

// disrupts reports whether the update of an instance changes a pod now: what comes ahead is made, and a pod has another
// revision.
func (p *Pass) disrupts(i *instance) bool {
	changes := func(m *member) bool {
		a := p.in.Ahead(m.pod)
		return a.isNothing() && !p.target().matches(p.in.revisionOf(m.pod))
	}
	return p.in.Ahead == nil || slices.ContainsFunc(i.members, changes)
}

// goAhead returns the next write that comes before the update of a pod, and reports whether the update waits.
func (p *Pass) goAhead(i *instance, m *member) (w *Write, waits bool) {
	if p.in.Ahead == nil {
		return nil, false
	}
	a := p.in.Ahead(m.pod)
	switch {
	case a.Err != nil:
		p.refrain(i)
		p.fail(Failure{Object: m.pod.Name, Ahead: true, Err: fmt.Errorf("pod %s: %w", m.pod.Name, a.Err)})
		return nil, true
	case int(m.ahead) < len(a.Writes):
		return &Write{Write: a.Writes[m.ahead], Action: ActionAhead}, true
	case a.Wait != "":
		p.note(note.Waiting, NoteAhead, m.pod.Name, a.Wait)
	}
	return nil, !a.isNothing()
}

// changes are the differences between the templates of two revisions. Each is computed once in a pass.
type changes struct {
	in      *Input
	known   map[changeKey]change
	decoded map[string]map[string]*corev1.PodTemplateSpec
}

func newChanges(in *Input) changes {
	return changes{in, map[changeKey]change{}, map[string]map[string]*corev1.PodTemplateSpec{}}
}

type changeKey struct{ from, to, role string }

type change struct {
	change  *inplace.Change
	blocked error
}

// of returns the change from the revision in a pod's label to another one, or why it is not possible in place.
func (c *changes) of(label string, to *Revision, role string) (*inplace.Change, error) {
	key := changeKey{revision.Short(label), to.Name, role}
	if known, ok := c.known[key]; ok {
		return known.change, known.blocked
	}
	made := change{}
	made.change, made.blocked = c.diff(label, to, role)
	c.known[key] = made
	return made.change, made.blocked
}

func (c *changes) diff(label string, to *Revision, role string) (*inplace.Change, error) {
	from := c.in.revision(label)
	if from == nil {
		return nil, fmt.Errorf("the revision %q of the pod is no longer stored", label)
	}
	if to.Data == nil {
		return nil, fmt.Errorf("the revision %s is not stored", to.Name)
	}
	if from.Fixed != "" && to.Fixed != "" && from.Fixed != to.Fixed {
		return nil, errors.New("the revisions differ in what no running pod can change, as volume claim templates")
	}
	before, err := c.template(from, role)
	if err != nil {
		return nil, err
	}
	after, err := c.template(to, role)
	if err != nil {
		return nil, err
	}
	return inplace.Diff(before, after, c.in.Policy)
}

// template decodes a template of a revision, once in a pass.
func (c *changes) template(r *Revision, role string) (*corev1.PodTemplateSpec, error) {
	if c.decoded[r.Name] == nil {
		roles, err := c.in.Layout.Decode(r.Data)
		if err != nil {
			return nil, fmt.Errorf("revision %s: %w", r.Name, err)
		}
		c.decoded[r.Name] = roles
	}
	template := c.decoded[r.Name][role]
	if template == nil {
		return nil, fmt.Errorf("revision %s has no template %q", r.Name, role)
	}
	return template, nil
}

// revision finds a revision with data by its name or hash.
func (in *Input) revision(label string) *Revision {
	for _, r := range []*Revision{&in.Update, &in.Current} {
		if r.Data != nil && r.matches(label) {
			return r
		}
	}
	for i := range in.Revisions {
		if r := &in.Revisions[i]; r.Data != nil && r.matches(label) {
			return r
		}
	}
	return nil
}
