package podunavailablebudget

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/pub"
)

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
