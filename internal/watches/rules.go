package watches

import (
	"errors"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/stored"
)

// Rules are what the objects of a kind look at, whose Go type is T. They compute the rule of an object once for each
// spec of the object, so that an event decodes and compiles nothing. They are safe for concurrent use.
type Rules[T, R any] struct {
	rule func(*T) (R, error)

	mu sync.Mutex
	// known are those of the objects that the last Affected of each list had, and Forget has not dropped since.
	known map[string]map[types.NamespacedName]*compiled[R]
}

// NewRules returns Rules. rule returns what an object looks at. It must depend on the UID and the spec alone. An object
// with an error has no rule, and no event affects it.
func NewRules[T, R any](rule func(*T) (R, error)) *Rules[T, R] {
	return &Rules[T, R]{rule: rule, known: map[string]map[types.NamespacedName]*compiled[R]{}}
}

// compiled is the rule of one spec of an object.
type compiled[R any] struct {
	uid        types.UID
	generation int64
	rule       R
	err        error
}

func (c *compiled[R]) isOf(raw *unstructured.Unstructured) bool {
	return c.uid == raw.GetUID() && c.generation == raw.GetGeneration()
}

// Affected returns requests for the objects of a list whose rule an event affects. Lists have names. Affected drops the
// rules of the objects that the list of a name no longer has.
func (r *Rules[T, R]) Affected(
	list string, objects []*unstructured.Unstructured, affects func(R) bool,
) []reconcile.Request {
	var requests []reconcile.Request
	for i, rule := range r.of(list, objects) {
		if rule.err == nil && affects(rule.rule) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(objects[i])})
		}
	}
	return requests
}

// of returns the rules of the objects of a list, in their order, and drops those of other objects.
func (r *Rules[T, R]) of(list string, objects []*unstructured.Unstructured) []*compiled[R] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(objects) == 0 {
		delete(r.known, list)
		return nil
	}
	known := r.known[list]
	if known == nil {
		known = map[types.NamespacedName]*compiled[R]{}
		r.known[list] = known
	}
	rules := make([]*compiled[R], len(objects))
	for i, raw := range objects {
		name := client.ObjectKeyFromObject(raw)
		rule := known[name]
		if rule == nil || !rule.isOf(raw) {
			rule = r.compile(raw)
			known[name] = rule
		}
		rules[i] = rule
	}
	if len(known) > len(objects) {
		listed := make(map[types.NamespacedName]bool, len(objects))
		for _, raw := range objects {
			listed[client.ObjectKeyFromObject(raw)] = true
		}
		maps.DeleteFunc(known, func(name types.NamespacedName, _ *compiled[R]) bool { return !listed[name] })
	}
	return rules
}

func (r *Rules[T, R]) compile(raw *unstructured.Unstructured) *compiled[R] {
	c := &compiled[R]{uid: raw.GetUID(), generation: raw.GetGeneration()}
	object := stored.Whole[T](raw)
	if object == nil {
		c.err = errors.New("the object cannot be decoded") // no index has such an object
		return c
	}
	c.rule, c.err = r.rule(object)
	return c
}

// Forget drops the rules of an object that is gone.
func (r *Rules[T, R]) Forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for list, known := range r.known {
		if delete(known, name); len(known) == 0 {
			delete(r.known, list)
		}
	}
}
