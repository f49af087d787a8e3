package podunavailablebudget

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/pub"
)

type podUnavailableBudget = policyv1beta1.PodUnavailableBudget

// snapshot holds what one reconcile read. Its objects may belong to the cache and are only read.
type snapshot struct {
	object *podUnavailableBudget
	budget pub.Budget
	// notes on the fields of the budget that cannot be read.
	notes []note.Note
	total pub.Total
	// pods are the active pods that the budget guards.
	pods []*corev1.Pod
	// budgets are those of the namespace, and chains the controllers of the pods that lack the stamp of the budget, by
	// the UID of the first controller. Both are empty where no pod lacks it.
	budgets []pub.Budget
	chains  map[types.UID]pub.Chain
	// recheckAfter is when to read again what no event reports: workloads, and a budget whose write the cache does not
	// show; zero for never.
	recheckAfter time.Duration
}

func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.object) }

// observe reads the snapshot. It returns nil where there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.budgets.Latest(ctx, r.api.Cached, name)
	if err != nil {
		return nil, err
	}
	if latest.Object == nil || latest.Object.GetDeletionTimestamp() != nil {
		r.emitted.Forget(name)
		r.rules.Forget(name)
		if !latest.Cached {
			r.budgets.Writes.Forget(name)
		}
		return nil, nil
	}
	if err := r.watchWorkloads(); err != nil {
		return nil, err
	}
	s := &snapshot{recheckAfter: latest.RecheckAfter}
	if err := s.read(latest.Object); err != nil {
		return nil, err
	}
	if err := r.observePods(ctx, s); err != nil {
		return nil, err
	}
	if err := r.sum(ctx, s); err != nil {
		return nil, err
	}
	return s, r.observeStamps(ctx, s)
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

// observePods finds the pods that the budget guards. A target that is not watched may have pods that only its selector
// selects.
func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	if s.budget.Target == nil {
		return r.list(ctx, s, nil, s.budget.Selector)
	}
	target := replicas.Workload{Namespace: s.budget.Namespace, Target: *s.budget.Target}
	is, err := r.workloads.Find(ctx, target)
	if err != nil || is.Gone || is.UID == "" {
		return err
	}
	owners := []types.UID{is.UID}
	if target.GroupKind() == replicas.Deployments() {
		sets, err := r.workloads.ReplicaSetsOf(ctx, target.Namespace, is.UID)
		if err != nil {
			return err
		}
		if len(sets) > 0 {
			owners = sets
		}
	}
	err = r.list(ctx, s, owners, nil)
	if selector := replicas.Selector(is.Selector); err == nil && is.Unwatched && len(s.pods) == 0 && selector != nil {
		err = r.list(ctx, s, nil, selector)
	}
	return err
}

// list adds the active pods of owners, or those that a selector selects.
func (r *Reconciler) list(ctx context.Context, s *snapshot, owners []types.UID, selector labels.Selector) error {
	var queries [][]client.ListOption
	for _, uid := range owners {
		queries = append(queries, owned.In(s.budget.Namespace, uid))
	}
	if selector != nil {
		selected := client.MatchingLabelsSelector{Selector: selector}
		queries = append(queries, []client.ListOption{client.InNamespace(s.budget.Namespace), selected})
	}
	for _, query := range queries {
		var list corev1.PodList
		if err := r.api.Client.List(ctx, &list, append(query, client.UnsafeDisableDeepCopy)...); err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		for i := range list.Items {
			if pod := &list.Items[i]; pub.Active(pod) {
				s.pods = append(s.pods, pod)
			}
		}
	}
	return nil
}

// sum finds the replicas that the workloads of the budget want: those of the target, or of what controls the pods.
func (r *Reconciler) sum(ctx context.Context, s *snapshot) error {
	tops, bare := []replicas.Workload(nil), false
	if s.budget.Target != nil {
		tops = []replicas.Workload{{Namespace: s.budget.Namespace, Target: *s.budget.Target}}
	} else {
		owners := map[types.UID]*metav1.OwnerReference{}
		for _, pod := range s.pods {
			if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
				owners[owner.UID] = owner
			} else {
				bare = true
			}
		}
		for _, uid := range slices.Sorted(maps.Keys(owners)) {
			top, err := r.workloads.Top(ctx, replicas.Of(s.budget.Namespace, owners[uid]))
			if err != nil {
				return err
			}
			tops = append(tops, top)
		}
	}
	all := make([]pub.Workload, 0, len(tops))
	for _, top := range tops {
		is, err := r.workloads.Find(ctx, top)
		if err != nil {
			return err
		}
		if is.Unwatched {
			s.recheckAfter = passes.Sooner(s.recheckAfter, replicas.Period)
		}
		all = append(all, is.Workload)
	}
	s.total = pub.TotalOf(all, bare)
	return nil
}

// maxChain bounds how many controllers of a pod are looked up.
const maxChain = 4

// observeStamps reads what decides which budget the pods without the stamp of this one should name.
func (r *Reconciler) observeStamps(ctx context.Context, s *snapshot) error {
	unstamped := s.unstamped()
	if len(unstamped) == 0 {
		return nil
	}
	all, err := stored.List(ctx, r.api.Cached, gvk(), client.InNamespace(s.budget.Namespace))
	if err != nil {
		return err
	}
	for _, raw := range all {
		object, malformed, err := stored.Decode[podUnavailableBudget](raw)
		if err == nil && malformed == nil && object.DeletionTimestamp == nil {
			budget, _ := pub.Read(object)
			s.budgets = append(s.budgets, budget)
		}
	}
	s.chains = map[types.UID]pub.Chain{}
	for _, pod := range unstamped {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || s.chains[owner.UID] != nil {
			continue
		}
		if s.chains[owner.UID], err = r.chainOf(ctx, replicas.Of(pod.Namespace, owner)); err != nil {
			return err
		}
	}
	return nil
}

// chainOf returns a workload, the controller of the workload, and so on, as far as the cache has them.
func (r *Reconciler) chainOf(ctx context.Context, of replicas.Workload) (chain pub.Chain, err error) {
	for ok := true; ok && len(chain) < maxChain; {
		chain = append(chain, of.Target)
		if of, ok, err = r.workloads.Above(ctx, of); err != nil {
			return nil, err
		}
	}
	return chain, nil
}
