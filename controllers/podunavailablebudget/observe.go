package podunavailablebudget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/pub"
)

type podUnavailableBudget = policyv1beta1.PodUnavailableBudget

// snapshot is what one pass looks at, besides the counted pods. The budget may be the cache's and is only read.
type snapshot struct {
	object *podUnavailableBudget
	budget pub.Budget
	// notes on what of the budget cannot be read.
	notes []note.Note
	total pub.Total
	// exist are the names of the budgets in the namespace.
	exist map[string]bool
	// recheckAfter is when to read again what no event reports: workloads, and a budget whose write the cache does not
	// show; zero for never.
	recheckAfter time.Duration
}

func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.object) }

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.budgets.Latest(ctx, r.api.Cached, name)
	if err != nil {
		return nil, err
	}
	if latest.Object == nil || latest.Object.GetDeletionTimestamp() != nil {
		r.forget(name, latest.Cached)
		return nil, nil
	}
	if err := r.watchWorkloads(); err != nil {
		return nil, err
	}
	s := &snapshot{recheckAfter: latest.RecheckAfter}
	if err := s.read(latest.Object); err != nil {
		return nil, err
	}
	if err := r.follow(ctx, s); err != nil {
		return nil, err
	}
	if err := r.sum(ctx, s); err != nil {
		return nil, err
	}
	return s, r.neighbours(ctx, s)
}

// read takes the budget as it is stored.
func (s *snapshot) read(raw *unstructured.Unstructured) error {
	object, malformed, err := stored.Decode[podUnavailableBudget](raw)
	if err != nil {
		return err
	}
	s.object = object
	s.budget, s.notes = pub.Read(object)
	if malformed != nil {
		s.notes = []note.Note{{Level: note.Blocked, Code: pub.NoteUnreadable, Object: object.Name, Text: malformed.Error()}}
	}
	return nil
}

// forget drops what is known of a budget that is gone or terminates.
func (r *Reconciler) forget(name types.NamespacedName, cached bool) {
	r.tracker.drop(name)
	r.events.forget(name)
	if !cached {
		r.budgets.Writes.Forget(name)
	}
}

// follow counts the pods of the budget. They are listed where the budget is new or changed, or has other owners than
// before.
func (r *Reconciler) follow(ctx context.Context, s *snapshot) error {
	if !r.tracker.expect(s.budget, r.api.Now()) {
		return nil
	}
	in, err := r.scope(ctx, s)
	var first bool
	if err == nil {
		first, err = r.tracker.follow(s.budget, in, func() ([]corev1.Pod, error) {
			return r.podsOf(ctx, s.budget.Namespace, in)
		})
	}
	if err != nil {
		r.tracker.failed(s.key())
	}
	if errors.Is(err, errCrowded) && r.events.emitted.Changed(about{s.key(), reasonCrowded}, err.Error()) {
		r.api.Event(s.object, corev1.EventTypeWarning, reasonCrowded, err.Error())
	}
	if first { // only now it is known which pods a stamp with the name of this budget may stay on
		for _, w := range r.tracker.unstamped(s.budget.Namespace) {
			r.api.Requeue(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: s.budget.Namespace, Name: w.budget}})
		}
	}
	return err
}

// scope returns which pods the budget guards.
func (r *Reconciler) scope(ctx context.Context, s *snapshot) (scope, error) {
	in := scope{generation: s.budget.Generation, selector: s.budget.Selector}
	if s.budget.Target == nil {
		return in, nil
	}
	target := replicas.Workload{Namespace: s.budget.Namespace, Target: *s.budget.Target}
	is, err := r.workloads.Find(ctx, target)
	if is.Unwatched {
		in.until = r.api.Now().Add(replicas.Period)
	}
	if err != nil || is.Gone || is.UID == "" {
		return in, err
	}
	in.owners = []types.UID{is.UID}
	if target.GroupKind() == replicas.Deployments() {
		sets, err := r.workloads.ReplicaSetsOf(ctx, target.Namespace, is.UID)
		if err != nil {
			return in, err
		}
		if len(sets) > 0 {
			in.owners = sets
		}
		return in, nil
	}
	if selector := replicas.Selector(is.Selector); is.Unwatched && selector != nil {
		pods, err := r.podsOf(ctx, target.Namespace, in)
		if err != nil {
			return in, err
		}
		if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pub.Active(&pod) }) {
			in.owners, in.selector = nil, selector
		}
	}
	return in, nil
}

// podsOf lists the pods of a scope. They are the cache's and only read.
func (r *Reconciler) podsOf(ctx context.Context, namespace string, in scope) ([]corev1.Pod, error) {
	var all []corev1.Pod
	queries := make([][]client.ListOption, 0, len(in.owners)+1)
	for _, uid := range in.owners {
		queries = append(queries, owned.In(namespace, uid))
	}
	if in.selector != nil {
		queries = append(queries, []client.ListOption{
			client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: in.selector},
		})
	}
	for _, query := range queries {
		var list corev1.PodList
		if err := r.api.Client.List(ctx, &list, append(query, client.UnsafeDisableDeepCopy)...); err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// sum finds the replicas that the workloads of the budget want.
func (r *Reconciler) sum(ctx context.Context, s *snapshot) error {
	tops, bare, err := r.tops(ctx, s)
	if err != nil {
		return err
	}
	all := make([]pub.Workload, 0, len(tops))
	for _, top := range tops {
		is, err := r.workloads.Find(ctx, top)
		if err != nil {
			return err
		}
		if is.Unwatched {
			s.recheckAfter = requeue.Sooner(s.recheckAfter, replicas.Period)
		}
		all = append(all, is.Workload)
	}
	s.total = pub.TotalOf(all, bare)
	return nil
}

// tops finds the workloads that are scaled: the target, or what controls the pods. Bare reports pods without a
// controller. Events of the workloads requeue the budget from before they are read.
func (r *Reconciler) tops(ctx context.Context, s *snapshot) (all []replicas.Workload, bare bool, err error) {
	if s.budget.Target != nil {
		return []replicas.Workload{{Namespace: s.budget.Namespace, Target: *s.budget.Target}}, false, nil
	}
	var owners []metav1.OwnerReference
	r.tracker.with(s.key(), func(t *tracked) { owners, bare = t.controllers(), t.bare > 0 })
	depends := map[pub.Target]bool{}
	for i := range owners {
		depends[replicas.Of(s.budget.Namespace, &owners[i]).Target] = true
	}
	r.tracker.depend(s.key(), depends)
	for i := range owners {
		top, err := r.workloads.Top(ctx, replicas.Of(s.budget.Namespace, &owners[i]))
		if err != nil {
			return nil, false, err
		}
		depends[top.Target] = true
		all = append(all, top)
	}
	r.tracker.dependOnly(s.key(), depends)
	return all, bare, nil
}

// neighbours finds which budgets the stamps of pods may name. It reads nothing where all stamps are right.
func (r *Reconciler) neighbours(ctx context.Context, s *snapshot) error {
	needed := false
	r.tracker.with(s.key(), func(t *tracked) { needed = len(t.unstamped) > 0 })
	if !needed {
		return nil
	}
	list, err := stored.List(ctx, r.api.Cached, gvk(), client.InNamespace(s.budget.Namespace))
	if err != nil {
		return err
	}
	s.exist = map[string]bool{}
	for _, b := range list {
		s.exist[b.GetName()] = b.GetDeletionTimestamp() == nil
	}
	return nil
}
