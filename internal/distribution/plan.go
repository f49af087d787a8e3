package distribution

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// Window is how long repairs of a copy are counted.
	Window = time.Minute
	// MaxRepairs is how often a copy that another writer changes is restored within a Window.
	MaxRepairs = 3
	// MaxReads is how often a copy that another writer touches is read within a Window.
	MaxReads = 30
)

// Namespace is one that exists.
type Namespace struct {
	Name        string
	Labels      map[string]string
	Terminating bool
}

// Copy is what metadata shows of the object that has the kind and the name of the resource in a namespace.
type Copy struct {
	UID     types.UID
	Version string
	// Controlled is what Owner.Controls reports.
	Controlled bool
	// Deleting is an object with a deletion timestamp.
	Deleting bool
}

// Known is what an earlier pass found out about the copy in a namespace.
type Known struct {
	UID     types.UID
	Version string
	// Digest is that of the resource that this version has; empty where the version was not read.
	Digest string
	// Keys is the value of KeysAnnotation there.
	Keys string
	// Filled is which maps that version has.
	Filled Filled
	// Failed means that the last step in the namespace failed.
	Failed bool

	// since begins a Window.
	since          time.Time
	repairs, reads int
}

// Filled is which maps of an object have keys.
type Filled struct{ Data, Binary bool }

// Input is what a pass looks at. Nothing of it is changed.
type Input struct {
	Owner Owner
	// Resource is what copies have; nil where it cannot be distributed, for the reason Invalid.
	Resource *Resource
	Targets  *Targets
	// Invalid is why nothing can be distributed. It has no effect where it is empty.
	Invalid string
	// Unreadable is why the copies cannot be observed. It has no effect where it is empty.
	Unreadable string
	Namespaces []Namespace
	// Copies are those of all namespaces, by namespace.
	Copies map[string]Copy
	// Known is Pass.Known of the pass before.
	Known map[string]Known
	Now   time.Time
}

// Pass is what to do.
type Pass struct {
	// Steps are what is left to do. The caller replaces each by its end.
	Steps []Step
	// RequeueAfter is when to plan again without an event; zero for never.
	RequeueAfter time.Duration
	Notes        []note.Note

	in Input
	// desired are the targets.
	desired map[string]bool
	// settled are the targets whose copies are as they should be.
	settled []string
	// failures are those that need no request.
	failures []Failure
	known    map[string]Known
	// template is what each creation begins with; nil before the first one.
	template Object
}

// Plan returns the steps of a pass.
func Plan(in Input) *Pass {
	p := &Pass{in: in, desired: map[string]bool{}, known: map[string]Known{}}
	if in.Targets == nil {
		p.fail(Failure{Type: v1beta1.ResourceDistributionGetResourceFailed, Text: in.Invalid})
		return p
	}
	exist := make(map[string]Namespace, len(in.Namespaces))
	for _, n := range in.Namespaces {
		exist[n.Name] = n
		if !n.Terminating && in.Targets.Match(n.Name, n.Labels) {
			p.desired[n.Name] = true
		}
	}
	for _, name := range in.Targets.Names() {
		p.desired[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(p.desired)) {
		p.distribute(name, exist)
	}
	if in.Resource == nil || in.Unreadable != "" {
		return p
	}
	for _, name := range slices.Sorted(maps.Keys(in.Copies)) {
		p.clean(name, exist)
	}
	slices.SortStableFunc(p.Steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(rank(in.Known[a.Namespace].Failed), rank(in.Known[b.Namespace].Failed)),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return p
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

func (p *Pass) fail(f Failure) {
	p.failures = append(p.failures, f)
	p.Notes = append(p.Notes, f.note())
}

// distribute plans what to do in a target.
func (p *Pass) distribute(namespace string, exist map[string]Namespace) {
	n, exists := exist[namespace]
	switch {
	case p.in.Resource == nil:
		p.fail(Failure{Namespace: namespace, Type: v1beta1.ResourceDistributionCreateResourceFailed, Text: p.in.Invalid})
	case !exists:
		p.fail(Failure{Namespace: namespace, Type: v1beta1.ResourceDistributionNamespaceNotExists, Text: textMissing})
	case n.Terminating:
		p.fail(Failure{Namespace: namespace, Type: v1beta1.ResourceDistributionNamespaceNotExists, Text: textTerminating})
	case p.in.Unreadable != "":
		p.fail(Failure{Namespace: namespace, Type: v1beta1.ResourceDistributionGetResourceFailed, Text: p.in.Unreadable})
	default:
		p.maintain(namespace)
	}
}

// The texts of failures that are not errors of the API server. Some are those of the reference.
const (
	textMissing     = "namespace not found"
	textTerminating = "namespace is terminating"
	textConflict    = "an object with the same kind and name exists, and this ResourceDistribution does not control it"
	textDeleting    = "the copy is being deleted, and a finalizer holds it"
	textContested   = "another writer changes or deletes the copy again and again: it is restored at most 3 " +
		"times in a minute"
	textRestless = "the copy changed after each read"
	textSkipped  = "not tried: requests to many other namespaces failed"
)

// maintain plans what to do in a target that exists.
func (p *Pass) maintain(namespace string) {
	in := &p.in
	is, has := in.Copies[namespace]
	known := in.Known[namespace]
	if in.Now.Sub(known.since) >= Window || in.Now.Before(known.since) {
		known.since, known.repairs, known.reads = in.Now, 0, 0
	}
	same := has && known.UID == is.UID && known.Version == is.Version
	switch {
	case has && !is.Controlled:
		p.fail(Failure{Namespace: namespace, Type: v1beta1.ResourceDistributionConflictOccurred, Text: textConflict})
	case has && is.Deleting:
		p.fail(Failure{Namespace: namespace, Type: v1beta1.ResourceDistributionUpdateResourceFailed, Text: textDeleting})
	case same && known.Digest == in.Resource.Digest:
		p.settled = append(p.settled, namespace)
		known.Failed = false
	default:
		p.begin(namespace, first(has, same && known.Digest != ""), known)
		return
	}
	p.known[namespace] = known // also the count of repairs
}

// first is the first request for a copy that is not settled. The content of a version that was read is known.
func first(has, read bool) Action {
	switch {
	case !has:
		return Create
	case read:
		return Update
	}
	return Inspect
}

// begin adds a step, unless the copy has to wait.
func (p *Pass) begin(namespace string, action Action, known Known) {
	is := p.in.Copies[namespace]
	step := Step{
		Namespace: namespace,
		Action:    action,
		UID:       is.UID,
		Version:   is.Version,
		target:    true,
		keys:      known.Keys,
		filled:    known.Filled,
		left:      maxRequests,
		repair:    known.Digest == p.in.Resource.Digest, // a copy that has the resource of before is no repair
	}
	if held, after := p.held(&step, known); held {
		p.requeue(after)
		p.known[namespace] = known
		return
	}
	if action == Inspect && known.Digest != "" {
		known.reads++
	}
	step.known = known
	p.Steps = append(p.Steps, step)
}

// held reports whether a copy has to wait, because another writer changes it all the time.
func (p *Pass) held(step *Step, known Known) (bool, time.Duration) {
	rest := known.since.Add(Window).Sub(p.in.Now)
	switch {
	case step.repair && known.repairs >= MaxRepairs:
		p.fail(Failure{
			Namespace: step.Namespace, Type: v1beta1.ResourceDistributionUpdateResourceFailed, Text: textContested,
		})
		return true, rest
	case step.Action == Inspect && step.repair && known.reads >= MaxReads:
		p.settled = append(p.settled, step.Namespace) // as far as it was read
		return true, rest
	}
	return false, 0
}

func (p *Pass) requeue(after time.Duration) {
	if p.RequeueAfter == 0 || after < p.RequeueAfter {
		p.RequeueAfter = after
	}
}

// clean plans the deletion of a copy in a namespace that is no target.
func (p *Pass) clean(namespace string, exist map[string]Namespace) {
	n, exists := exist[namespace]
	is := p.in.Copies[namespace]
	if p.desired[namespace] || !exists || n.Terminating || !is.Controlled || is.Deleting ||
		p.in.Targets.spares(namespace, n.Labels) {
		return
	}
	p.Steps = append(p.Steps, Step{
		Namespace: namespace, Action: Delete, UID: is.UID, Version: is.Version, left: maxRequests, known: Known{},
	})
}

// Deletes reports whether the pass deletes a copy.
func (p *Pass) Deletes() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Action == Delete })
}

// Known returns what the next pass needs to know.
func (p *Pass) Known() map[string]Known {
	all := maps.Clone(p.known)
	for _, s := range p.Steps {
		if !s.target {
			if s.Failure != nil {
				all[s.Namespace] = Known{Failed: true}
			}
			continue
		}
		known := s.known
		known.Failed = s.Failure != nil
		all[s.Namespace] = known
	}
	return all
}
