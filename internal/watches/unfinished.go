package watches

import (
	"context"
	"errors"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/stored"
)

const (
	// unfinishedField is the name of the index of the jobs that have not ended.
	unfinishedField = "kruisekit.dev/goes-on"
	yes             = "true"
)

// Unfinished are the jobs of a kind that have not ended, with what each of them looks at. It computes the rule of a job once for each spec of the
// job, so that an event decodes and compiles nothing. It is safe for concurrent use.
type Unfinished[T, R any] struct {
	// Kind is the kind of the jobs, whose Go type is T.
	Kind schema.GroupVersionKind
	// Over reports whether a job has ended.
	Over func(*T) bool
	// Rule returns what a job looks at. It must depend on the UID and the spec alone. A job with an error has no rule, and no event affects it.
	Rule func(*T) (R, error)

	mu sync.Mutex
	// rules are those of the jobs that the last Affected of a namespace has listed, and Forget has not dropped since.
	rules map[string]map[types.NamespacedName]*compiled[R]
}

// compiled is the rule of one spec of a job.
type compiled[R any] struct {
	uid        types.UID
	generation int64
	rule       R
	err        error
}

func (c *compiled[R]) isOf(raw *unstructured.Unstructured) bool {
	return c.uid == raw.GetUID() && c.generation == raw.GetGeneration()
}

// Index adds the index that Affected reads.
func (u *Unfinished[T, R]) Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, stored.Untyped(u.Kind), unfinishedField, func(o client.Object) []string {
		if o.GetDeletionTimestamp() != nil {
			return nil
		}
		if job := stored.Whole[T](o); job != nil && !u.Over(job) {
			return []string{yes}
		}
		return nil
	})
}

// Affected returns requests for the jobs of a namespace whose rule an event affects. An empty namespace means all namespaces. The reader must serve
// untyped objects from a cache.
func (u *Unfinished[T, R]) Affected(ctx context.Context, cached client.Reader, namespace string, affects func(R) bool) ([]reconcile.Request, error) {
	jobs, err := stored.List(ctx, cached, u.Kind, client.InNamespace(namespace), client.MatchingFields{unfinishedField: yes})
	if err != nil {
		return nil, err
	}
	var requests []reconcile.Request
	for i, rule := range u.rulesOf(namespace, jobs) {
		if rule.err == nil && affects(rule.rule) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(jobs[i])})
		}
	}
	return requests, nil
}

// rulesOf returns the rules of the unfinished jobs of a namespace, in their order, and drops those of other jobs there.
func (u *Unfinished[T, R]) rulesOf(namespace string, jobs []*unstructured.Unstructured) []*compiled[R] {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(jobs) == 0 {
		delete(u.rules, namespace)
		return nil
	}
	if u.rules == nil {
		u.rules = map[string]map[types.NamespacedName]*compiled[R]{}
	}
	known := u.rules[namespace]
	if known == nil {
		known = map[types.NamespacedName]*compiled[R]{}
		u.rules[namespace] = known
	}
	rules := make([]*compiled[R], len(jobs))
	for i, raw := range jobs {
		name := client.ObjectKeyFromObject(raw)
		rule := known[name]
		if rule == nil || !rule.isOf(raw) {
			rule = u.compile(raw)
			known[name] = rule
		}
		rules[i] = rule
	}
	if len(known) > len(jobs) {
		listed := make(map[types.NamespacedName]bool, len(jobs))
		for _, raw := range jobs {
			listed[client.ObjectKeyFromObject(raw)] = true
		}
		maps.DeleteFunc(known, func(name types.NamespacedName, _ *compiled[R]) bool { return !listed[name] })
	}
	return rules
}

func (u *Unfinished[T, R]) compile(raw *unstructured.Unstructured) *compiled[R] {
	c := &compiled[R]{uid: raw.GetUID(), generation: raw.GetGeneration()}
	job := stored.Whole[T](raw)
	if job == nil {
		c.err = errors.New("the job cannot be decoded") // the index has none such
		return c
	}
	c.rule, c.err = u.Rule(job)
	return c
}

// Forget drops the rule of a job that is gone.
func (u *Unfinished[T, R]) Forget(name types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, namespace := range []string{name.Namespace, ""} {
		if delete(u.rules[namespace], name); len(u.rules[namespace]) == 0 {
			delete(u.rules, namespace)
		}
	}
}
