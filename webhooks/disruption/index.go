package disruption

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/pub"
)

// budgetKind is the kind of budgets.
func budgetKind() schema.GroupVersionKind {
	return policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget")
}

// budgetIndex has the budgets of the cluster by namespace. It is safe for concurrent use.
type budgetIndex struct {
	mu         sync.RWMutex
	namespaces map[string]*place
	// changed is closed and replaced at each change.
	changed chan struct{}
}

// place has the budgets of one namespace.
type place struct {
	byName map[string]known
	// all are the same budgets in the order of their names, or nil after a change. The slice is replaced, and never
	// changed.
	all []pub.Budget
}

// known is a state of a budget.
type known struct {
	budget  pub.Budget
	version string
	object  *policyv1beta1.PodUnavailableBudget
}

// newBudgetIndex returns an empty index.
func newBudgetIndex() *budgetIndex {
	return &budgetIndex{namespaces: map[string]*place{}, changed: make(chan struct{})}
}

// Put files a budget in place of the one of its name. A budget whose spec cannot be decoded guards no pod.
func (x *budgetIndex) Put(raw *unstructured.Unstructured) error {
	now, err := read(raw)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	in := x.namespaces[now.budget.Namespace]
	if in == nil {
		in = &place{byName: map[string]known{}}
		x.namespaces[now.budget.Namespace] = in
	}
	in.byName[now.budget.Name], in.all = now, nil
	x.wake()
	return nil
}

// read decodes a budget.
func read(raw *unstructured.Unstructured) (known, error) {
	object, _, err := stored.Decode[policyv1beta1.PodUnavailableBudget](raw)
	if err != nil {
		return known{}, err
	}
	budget, _ := pub.Read(object) // the controller reports what cannot be read
	return known{budget, object.ResourceVersion, object}, nil
}

// Delete removes a budget.
func (x *budgetIndex) Delete(name types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	in := x.namespaces[name.Namespace]
	if in == nil {
		return
	}
	if delete(in.byName, name.Name); len(in.byName) == 0 {
		delete(x.namespaces, name.Namespace)
	}
	in.all = nil
	x.wake()
}

func (x *budgetIndex) wake() {
	close(x.changed)
	x.changed = make(chan struct{})
}

// In returns the budgets of a namespace, which must not be changed.
func (x *budgetIndex) In(namespace string) []pub.Budget {
	x.mu.RLock()
	in := x.namespaces[namespace]
	if in == nil || in.all != nil {
		defer x.mu.RUnlock()
		if in == nil {
			return nil
		}
		return in.all
	}
	x.mu.RUnlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if in.all == nil {
		all := make([]pub.Budget, 0, len(in.byName))
		for _, k := range in.byName {
			all = append(all, k.budget)
		}
		slices.SortFunc(all, func(a, b pub.Budget) int { return strings.Compare(a.Name, b.Name) })
		in.all = all
	}
	return in.all
}

// Objects returns the budgets of a namespace as they are stored, in no order. They must not be changed.
func (x *budgetIndex) Objects(namespace string) []*policyv1beta1.PodUnavailableBudget {
	x.mu.RLock()
	defer x.mu.RUnlock()
	in := x.namespaces[namespace]
	if in == nil {
		return nil
	}
	all := make([]*policyv1beta1.PodUnavailableBudget, 0, len(in.byName))
	for _, k := range in.byName {
		all = append(all, k.object)
	}
	return all
}

// find returns a budget; false where there is none.
func (x *budgetIndex) find(name types.NamespacedName) (known, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	in := x.namespaces[name.Namespace]
	if in == nil {
		return known{}, false
	}
	k, is := in.byName[name.Name]
	return k, is
}

// await waits until a condition on the index holds; false if the context ends before.
func (x *budgetIndex) await(ctx context.Context, holds func() bool) bool {
	for {
		x.mu.RLock()
		changed := x.changed
		x.mu.RUnlock()
		if holds() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// nameOf is the name of a budget.
func nameOf(b pub.Budget) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}
