package podunavailablebudget

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/pub"
)

// tracker counts the pods that budgets guard, one event of a pod at a time. It is safe for concurrent use.
type tracker struct {
	policy pub.Policy

	mu sync.Mutex
	// namespaces has the budgets that were reconciled, by namespace and name.
	namespaces map[string]map[string]*tracked
}

// wake is a budget to reconcile.
type wake struct {
	budget string
	after  time.Duration
}

// arrive is how long the record of a pod that terminates may need to arrive. It was written before the pod was deleted,
// and another watch has it.
const arrive = 50 * time.Millisecond

// set counts a pod, and returns the budgets whose status may change.
func (t *tracker) set(pod *corev1.Pod) []wake {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []wake
	for name, b := range t.namespaces[pod.Namespace] {
		if !b.set(pod, t.policy) {
			continue
		}
		w := wake{budget: name}
		if pod.DeletionTimestamp != nil {
			w.after = arrive
		}
		all = append(all, w)
	}
	return all
}

// remove removes a pod that is gone, and returns the budgets whose status may change.
func (t *tracker) remove(pod *corev1.Pod) []wake {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []wake
	for name, b := range t.namespaces[pod.Namespace] {
		if b.remove(pod.Name) {
			all = append(all, wake{budget: name})
		}
	}
	return all
}

// touched returns the budgets whose total may change with a workload. Their owners are read again.
func (t *tracker) touched(namespace string, workloads ...pub.Target) []wake {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []wake
	for name, b := range t.namespaces[namespace] {
		if slices.ContainsFunc(workloads, func(w pub.Target) bool { return b.depends[w] }) {
			b.stale = true
			all = append(all, wake{budget: name})
		}
	}
	return all
}

// unstamped returns the budgets of a namespace that guard pods with the stamp of another budget, or without one.
func (t *tracker) unstamped(namespace string) []wake {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []wake
	for name, b := range t.namespaces[namespace] {
		if len(b.unstamped) > 0 {
			all = append(all, wake{budget: name})
		}
	}
	return all
}

// expect follows a budget that is not followed yet, for now without pods, and reports whether its pods are to be found:
// the budget is new or changed, or its owners may be others. Events of workloads are noticed from here on.
func (t *tracker) expect(b pub.Budget, now time.Time) (find bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.namespaces == nil {
		t.namespaces = map[string]map[string]*tracked{}
	}
	if t.namespaces[b.Namespace] == nil {
		t.namespaces[b.Namespace] = map[string]*tracked{}
	}
	is := t.namespaces[b.Namespace][b.Name]
	if is == nil || is.budget.UID != b.UID {
		is = newTracked(b, scope{generation: -1})
		t.namespaces[b.Namespace][b.Name] = is
	}
	if b.Target != nil {
		is.depends[*b.Target] = true
	}
	find = is.stale || is.scope.generation != b.Generation || !is.scope.until.IsZero() && !now.Before(is.scope.until)
	is.stale = false
	return find
}

// failed has the pods of a budget found again.
func (t *tracker) failed(name types.NamespacedName) {
	t.with(name, func(b *tracked) { b.stale = true })
}

// follow counts the pods of a budget in a scope. Where the scope is another one than before, list returns the pods to
// begin with. Events of pods wait meanwhile, so that none is lost.
func (t *tracker) follow(b pub.Budget, s scope, list func() ([]corev1.Pod, error)) (first bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.namespaces[b.Namespace][b.Name]
	if is == nil {
		return false, nil // deleted meanwhile
	}
	if is.scope.same(&s) {
		is.scope.until = s.until
		return false, nil
	}
	if t.crowded(b, 0) {
		return false, errCrowded
	}
	pods, err := list()
	if err != nil {
		return false, err
	}
	if t.crowded(b, len(pods)) {
		return false, errCrowded
	}
	fresh := newTracked(b, s)
	fresh.stale, fresh.depends = is.stale, is.depends
	for i := range pods {
		fresh.set(&pods[i], t.policy)
	}
	t.namespaces[b.Namespace][b.Name] = fresh
	return is.scope.generation < 0, nil
}

// maxMembers bounds how many pods all budgets of a namespace count together when another budget is followed.
const maxMembers = 200000

// errCrowded is a namespace whose budgets count as many pods as they may.
var errCrowded = errors.New(
	"the budgets of the namespace select too many pods together: delete budgets that select the same pods")

// crowded reports whether the budgets of a namespace cannot count more pods. A budget always counts its pods where no
// other budget does.
func (t *tracker) crowded(b pub.Budget, more int) bool {
	held := 0
	for name, other := range t.namespaces[b.Namespace] {
		if name != b.Name {
			held += len(other.pods)
		}
	}
	return held > 0 && (held >= maxMembers || held+more > maxMembers)
}

// depend adds workloads that the total is computed from, before they are read.
func (t *tracker) depend(name types.NamespacedName, on map[pub.Target]bool) {
	t.with(name, func(b *tracked) { maps.Copy(b.depends, on) })
}

// dependOnly drops all other workloads.
func (t *tracker) dependOnly(name types.NamespacedName, on map[pub.Target]bool) {
	t.with(name, func(b *tracked) { b.depends = on })
}

// with calls do with what is known of a budget, while no event changes it. It does nothing for a budget that is not
// followed.
func (t *tracker) with(name types.NamespacedName, do func(*tracked)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.namespaces[name.Namespace][name.Name]; b != nil {
		do(b)
	}
}

// stamped records a stamp that was written, before the event of the pod.
func (t *tracker) stamped(name types.NamespacedName, of stamp) {
	t.with(name, func(b *tracked) {
		if is, ok := b.pods[of.pod]; ok && is.uid == of.uid {
			is.stamp = b.budget.Name
			b.pods[of.pod] = is
			delete(b.unstamped, of.pod)
		}
	})
}

// drop forgets a budget.
func (t *tracker) drop(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.namespaces[name.Namespace], name.Name)
	if len(t.namespaces[name.Namespace]) == 0 {
		delete(t.namespaces, name.Namespace)
	}
}

// tracked is what is known of one budget and its pods.
type tracked struct {
	budget pub.Budget
	scope  scope
	// stale means that the owners of the pods may be others.
	stale bool
	// depends are the workloads that the total was computed from.
	depends map[pub.Target]bool

	counts pub.Counts
	pods   map[string]member
	owners map[types.UID]*controls
	bare   int
	// unstamped are the pods whose stamp does not name the budget.
	unstamped map[string]bool
}

// scope is which pods a budget guards.
type scope struct {
	generation int64
	selector   labels.Selector
	owners     []types.UID
	// until is when to find the owners again where no event reports a change of the target; zero for never.
	until time.Time
}

// has reports whether a scope has a pod.
func (s *scope) has(pod *corev1.Pod) bool {
	if s.selector != nil && s.selector.Matches(labels.Set(pod.Labels)) {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && slices.Contains(s.owners, owner.UID)
}

func (s *scope) same(other *scope) bool {
	return s.generation == other.generation && slices.Equal(s.owners, other.owners) &&
		(s.selector == nil) == (other.selector == nil) &&
		(s.selector == nil || s.selector.String() == other.selector.String())
}

// member is a pod of a budget.
type member struct {
	uid, owner types.UID
	stamp      string
}

// controls is a controller of pods of a budget.
type controls struct {
	reference metav1.OwnerReference
	pods      int
}

func newTracked(b pub.Budget, s scope) *tracked {
	return &tracked{
		budget:    b,
		scope:     s,
		depends:   map[pub.Target]bool{},
		pods:      map[string]member{},
		owners:    map[types.UID]*controls{},
		unstamped: map[string]bool{},
	}
}

// set counts a pod of the scope. It reports whether the status may change, or a stamp is missing.
func (b *tracked) set(pod *corev1.Pod, p pub.Policy) bool {
	if !pub.Active(pod) || !b.scope.has(pod) {
		return b.remove(pod.Name)
	}
	is := member{uid: pod.UID, stamp: pub.Stamp(pod)}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner != nil {
		is.owner = owner.UID
	}
	changed := b.counts.Set(pod, p)
	was, had := b.pods[pod.Name]
	if had && was == is {
		return changed
	}
	b.release(was, had)
	b.pods[pod.Name] = is
	if owner == nil {
		b.bare++
	} else {
		if b.owners[is.owner] == nil {
			b.owners[is.owner] = &controls{reference: *owner}
		}
		b.owners[is.owner].pods++
	}
	if is.stamp == b.budget.Name {
		delete(b.unstamped, pod.Name)
		return changed || had && was.owner != is.owner
	}
	b.unstamped[pod.Name] = true
	return true
}

// remove reports whether the pod was counted.
func (b *tracked) remove(pod string) bool {
	was, had := b.pods[pod]
	b.release(was, had)
	delete(b.pods, pod)
	delete(b.unstamped, pod)
	return b.counts.Remove(pod) || had
}

func (b *tracked) release(was member, had bool) {
	switch owner := b.owners[was.owner]; {
	case !had:
	case was.owner == "":
		b.bare--
	case owner.pods == 1:
		delete(b.owners, was.owner)
	default:
		owner.pods--
	}
}

// controllers are those of the pods, in the order of their UIDs.
func (b *tracked) controllers() []metav1.OwnerReference {
	var all []metav1.OwnerReference
	for _, uid := range slices.Sorted(maps.Keys(b.owners)) {
		all = append(all, b.owners[uid].reference)
	}
	return all
}
