package resourcedistribution

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/passes"
)

type metadata = metav1.PartialObjectMetadata

// known is what the last task in a namespace returned.
type known struct {
	// version is that of the copy as it was read or written, and hash is that of the resource that it has.
	version, hash string
	// failed means that the last task failed.
	failed bool
	// repaired is when the copy was restored last.
	repaired time.Time
}

// action is how a task begins.
type action string

const (
	// actionCreate creates a copy. Where the object exists, actionCompare follows.
	actionCreate action = "Create"
	// actionCompare reads the live object, and sends what resource.writes returns.
	actionCompare action = "Compare"
	// actionDelete deletes the copy in a namespace that is no target.
	actionDelete action = "Delete"
)

// task is what to do in one namespace.
type task struct {
	namespace string
	action    action
	// copied is what the cache shows; nil for nothing.
	copied *metadata
	// repair means that the copy was right before another writer changed it.
	repair bool

	known known
	// failure is set until the task succeeds.
	failure *failed
}

// plan is what to do for a distribution. Its tasks are independent of each other.
type plan struct {
	*snapshot

	tasks        []*task
	requeueAfter time.Duration

	desired map[string]bool
	// failures are those without a task.
	failures []failed
	// next is what the next plan knows of the namespaces without a task.
	next map[string]known
}

func newPlan(s *snapshot) *plan {
	p := &plan{snapshot: s, desired: map[string]bool{}, next: map[string]known{}}
	if s.targets == nil {
		p.fail("", v1beta1.ResourceDistributionGetResourceFailed, s.invalid)
		return p
	}
	namespaces := make(map[string]*metadata, len(s.namespaces))
	for i := range s.namespaces {
		n := &s.namespaces[i]
		namespaces[n.Name] = n
		if n.DeletionTimestamp == nil && s.targets.Match(n.Name, n.Labels) {
			p.desired[n.Name] = true
		}
	}
	for _, name := range s.targets.Names() {
		p.desired[name] = true
	}
	for name := range p.desired {
		p.distribute(name, namespaces[name])
	}
	for name, object := range s.copies {
		if n := namespaces[name]; n != nil && n.DeletionTimestamp == nil && !s.targets.Selects(n.Name, n.Labels) &&
			metav1.IsControlledBy(object, s.object) && object.DeletionTimestamp == nil {
			p.add(&task{namespace: name, action: actionDelete, copied: object, known: s.known[name]})
		}
	}
	slices.SortFunc(p.tasks, func(a, b *task) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.namespace, b.namespace))
	})
	return p
}

// rank sorts namespaces that failed to the end: others must not wait for them.
func rank(t *task) int {
	if t.known.failed {
		return 1
	}
	return 0
}

func (p *plan) fail(namespace string, condition conditionType, text string) {
	p.failures = append(p.failures, failed{namespace: namespace, condition: condition, text: text})
}

func (p *plan) add(t *task) {
	t.failure = t.failed(errSkipped)
	p.tasks = append(p.tasks, t)
}

// distribute plans what to do in a target, which is nil where it does not exist.
func (p *plan) distribute(name string, namespace *metadata) {
	switch {
	case p.resource == nil:
		p.fail(name, v1beta1.ResourceDistributionCreateResourceFailed, p.invalid)
	case namespace == nil:
		p.fail(name, v1beta1.ResourceDistributionNamespaceNotExists, textMissing)
	case namespace.DeletionTimestamp != nil:
		p.fail(name, v1beta1.ResourceDistributionNamespaceNotExists, textTerminating)
	case p.unreadable != "":
		p.fail(name, v1beta1.ResourceDistributionGetResourceFailed, p.unreadable)
	default:
		p.maintain(name, p.copies[name], p.known[name])
	}
}

// maintain plans what to do in a target that exists.
func (p *plan) maintain(namespace string, object *metadata, is known) {
	rest := is.repaired.Add(distribution.RepairPause).Sub(p.now)
	t := &task{namespace: namespace, action: actionCompare, copied: object, known: is, repair: is.hash == p.resource.hash}
	switch {
	case object != nil && !metav1.IsControlledBy(object, p.object):
		p.fail(namespace, v1beta1.ResourceDistributionConflictOccurred, textConflict)
	case object != nil && object.DeletionTimestamp != nil:
		p.fail(namespace, v1beta1.ResourceDistributionUpdateResourceFailed, textDeleting)
	case object != nil && t.repair && object.ResourceVersion == is.version:
	case t.repair && rest > 0:
		p.requeueAfter = passes.Sooner(p.requeueAfter, rest)
	default:
		if object == nil {
			t.action = actionCreate
		}
		p.add(t)
		return
	}
	is.failed = false
	p.next[namespace] = is
}

// end records how a task ended. live is the copy as it is now; nil for a deletion.
func (p *plan) end(t *task, live metav1.Object, wrote bool, failure *failed) {
	t.failure, t.known.failed = failure, failure != nil
	switch {
	case failure != nil:
	case t.action == actionDelete:
		t.known = known{}
	default:
		t.known.version, t.known.hash = live.GetResourceVersion(), p.resource.hash
		if wrote && t.repair {
			t.known.repaired = p.now
		}
	}
}

// remembered is what the next plan knows.
func (p *plan) remembered() map[string]known {
	for _, t := range p.tasks {
		p.next[t.namespace] = t.known
	}
	return p.next
}
