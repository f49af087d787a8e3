package disruption

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/groupcommit"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/workload"
)

// Unguarded admits: no budget guards the pod, or its budget was deleted meanwhile.
const Unguarded pub.Reason = "Unguarded"

// managerUser is the user of the reviews that reconcilers ask for, as in the reference.
const managerUser = "kruise-manager"

// GuardOptions are the options of a Guard. The zero value is the default of the reference, which exempts no user:
// pub.SystemUsers, in the policy, are those whom budgets should not refuse. podscope.Options.ExemptUsers takes the same
// list.
type GuardOptions struct {
	// Policy is what the installation offers, and which users are exempt.
	Policy pub.Policy
	// Recorder emits the events of pods that a budget refuses; nil for the recorder of the manager, or for none.
	Recorder driver.EventRecorder
	// Registerer registers the metric of refusals; nil keeps none.
	Registerer prometheus.Registerer
	// Audit is called for each refusal; nil for no call.
	Audit func(Refusal)
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

func (o GuardOptions) withDefaults() GuardOptions {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	return o
}

// guardLookups are what a Guard reads and writes.
type guardLookups struct {
	// Budgets of the cluster.
	Budgets *budgetIndex
	// Client writes statuses of budgets.
	Client client.Client
	// Live reads a budget after a conflict.
	Live client.Reader
	// ReplicaSets reads metadata of ReplicaSets, from a cache.
	ReplicaSets client.Reader
	// Filled waits until Budgets has all budgets; nil if there is nothing to wait for.
	Filled func(context.Context) error
}

// Guard decides about disruptions of pods by the budgets of the cluster, and records those that it admits. Besides this
// webhook, the webhook of new pods, that of budgets and the reconcilers of workloads ask the Guard: Guard.Ask is the
// option Ask of controllers/cloneset.
type Guard struct {
	lookups guardLookups
	options GuardOptions
	report  report
	reviews *groupcommit.Committer[known, *request]
}

func newGuard(l guardLookups, o GuardOptions) (*Guard, error) {
	if l.Budgets == nil || l.Client == nil || l.Live == nil || l.ReplicaSets == nil {
		return nil, errors.New("disruption guard: an index, a client and readers are required")
	}
	o = o.withDefaults()
	r, err := newReport(o)
	if err != nil {
		return nil, fmt.Errorf("disruption guard: %w", err)
	}
	reviews := groupcommit.New(&store{groupcommit.Statuses[known]{
		Kind: budgetKind(), Index: l.Budgets, Client: l.Client, Reader: l.Live,
	}, o.Now})
	return &Guard{lookups: l, options: o, report: r, reviews: reviews}, nil
}

// Ready waits until all budgets can be read. It returns at once if they can, also with a context that has ended.
func (g *Guard) Ready(ctx context.Context) error {
	if g.lookups.Filled == nil {
		return nil
	}
	return g.lookups.Filled(ctx)
}

// Objects returns the budgets of a namespace as they are stored. They must not be changed.
func (g *Guard) Objects(ctx context.Context, namespace string) ([]*policyv1beta1.PodUnavailableBudget, error) {
	if err := g.Ready(ctx); err != nil {
		return nil, fmt.Errorf("wait for the budgets: %w", err)
	}
	var all []*policyv1beta1.PodUnavailableBudget
	for _, k := range g.lookups.Budgets.In(namespace) {
		all = append(all, k.object)
	}
	return all, nil
}

// Policy is what the installation offers.
func (g *Guard) Policy() pub.Policy { return g.options.Policy }

// Disruption is one operation on a pod.
type Disruption struct {
	// Pod before the operation.
	Pod *corev1.Pod
	// Operation that disrupts the pod.
	Operation pub.Operation
	// User who asks for the operation.
	User string
	// DryRun decides, and records nothing.
	DryRun bool
}

// Decision is the answer to one disruption.
type Decision struct {
	pub.Verdict

	// Budget that guards the pod; nil where none does.
	Budget *pub.Budget
}

// Budget returns the budget that guards a pod; nil where none does. Pods of namespaces without budgets cost one lookup
// in a map.
func (g *Guard) Budget(ctx context.Context, pod *corev1.Pod) (*pub.Budget, error) {
	if err := g.Ready(ctx); err != nil {
		return nil, fmt.Errorf("wait for the budgets: %w", err)
	}
	if !g.lookups.Budgets.Any(pod.Namespace) {
		return nil, nil //nolint:nilnil // no budget guards the pod
	}
	var all []pub.Budget
	for _, k := range g.lookups.Budgets.In(pod.Namespace) {
		all = append(all, k.budget)
	}
	chain, err := g.chain(ctx, pod, all)
	if err != nil {
		return nil, err
	}
	return pub.Match(pod, chain, all), nil
}

// chain returns the controller of a pod, and the Deployment of a ReplicaSet where a budget may name it.
func (g *Guard) chain(ctx context.Context, pod *corev1.Pod, all []pub.Budget) (pub.Chain, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil, nil
	}
	chain := pub.Chain{targetOf(owner)}
	if chain[0].Kind != "ReplicaSet" || chain[0].Group != "apps" || !targets(all, "Deployment") {
		return chain, nil
	}
	set := &metav1.PartialObjectMetadata{}
	set.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"})
	err := g.lookups.ReplicaSets.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, set)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the owner of replicaset %s: %w", owner.Name, err)
	}
	if top := metav1.GetControllerOfNoCopy(set); err == nil && top != nil && set.UID == owner.UID {
		chain = append(chain, targetOf(top))
	}
	return chain, nil
}

func targets(all []pub.Budget, kind string) bool {
	for i := range all {
		if all[i].Target != nil && all[i].Target.Kind == kind {
			return true
		}
	}
	return false
}

func targetOf(owner *metav1.OwnerReference) pub.Target {
	version, _ := schema.ParseGroupVersion(owner.APIVersion) // without a group nothing matches
	return pub.Target{Group: version.Group, Kind: owner.Kind, Name: owner.Name}
}

// review is Review for all users alike.
func (g *Guard) review(ctx context.Context, d Disruption) (Decision, error) {
	all, err := g.reviewAll(ctx, []*corev1.Pod{d.Pod}, d)
	if err != nil {
		return Decision{}, err
	}
	return all[0], nil
}

// askTimeout bounds the review of an update.
const askTimeout = 10 * time.Second

// Ask reviews an update of pods of a workload, from the first pod on. It returns nil,
// a *workload.RefusedError, or the error of a lookup or a write.
func (g *Guard) Ask(ctx context.Context, pods []*corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout) // conflicts without end must not hold a reconciler
	defer cancel()
	all, err := g.reviewAll(ctx, pods, Disruption{Operation: pub.Update, User: managerUser})
	if err != nil {
		return err
	}
	if last := all[len(all)-1]; !last.Allowed {
		return &workload.RefusedError{
			Admitted: len(all) - 1, Reason: "PodUnavailableBudget " + last.Budget.Name + ": " + last.Text,
		}
	}
	return nil
}

// reviewAll reviews disruptions that are alike but for the pod, up to the first one that is refused.
func (g *Guard) reviewAll(ctx context.Context, pods []*corev1.Pod, d Disruption) ([]Decision, error) {
	var all []Decision
	for len(pods) > len(all) {
		rest := pods[len(all):]
		budget, err := g.Budget(ctx, rest[0])
		if err != nil {
			return nil, err
		}
		if budget == nil {
			all = append(all, Decision{Verdict: pub.Verdict{Allowed: true, Reason: Unguarded}})
			continue
		}
		same := 1
		for ; same < len(rest); same++ {
			next, err := g.Budget(ctx, rest[same])
			if err != nil {
				return nil, err
			}
			if next == nil || next.UID != budget.UID {
				break
			}
		}
		decided, err := g.reviewUnder(ctx, *budget, rest[:same], d)
		if err != nil {
			return nil, err
		}
		all = append(all, decided...)
		if last := all[len(all)-1]; !last.Allowed {
			d.Pod = pods[len(all)-1]
			g.report.refused(d, last)
			break
		}
	}
	return all, nil
}

// reviewUnder reviews disruptions under one budget, up to the first one that is refused.
func (g *Guard) reviewUnder(ctx context.Context, b pub.Budget, pods []*corev1.Pod, d Disruption) ([]Decision, error) {
	r := &request{dryRun: d.DryRun}
	for _, pod := range pods {
		r.disruptions = append(r.disruptions, pub.Disruption{
			Pod: pod, Operation: d.Operation, User: d.User, Policy: g.options.Policy,
		})
	}
	if !r.isStateless(b, g.options.Now()) {
		if err := g.commit(ctx, b, r); err != nil {
			return nil, fmt.Errorf("decide by budget %s: %w", b.Name, err)
		}
	}
	all := make([]Decision, len(r.verdicts))
	for i, v := range r.verdicts {
		all[i] = Decision{Verdict: v, Budget: &b}
	}
	return all, nil
}
