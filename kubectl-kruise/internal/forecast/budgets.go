package forecast

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/workload"
)

// guard decides about updates of pods by the PodUnavailableBudgets of the snapshot, as admission does.
type guard struct {
	*simulation

	namespace string
	budgets   []pub.Budget
	// totals are the replicas of the workloads that each budget guards.
	totals []pub.Total
	policy pub.Policy
	// parents are the controllers of ReplicaSets, by the names of these.
	parents map[string]*metav1.OwnerReference
}

// newGuard reads the budgets. The workload has a number of replicas more after the change.
func newGuard(s *simulation, objects []client.Object, pods []*corev1.Pod, scaled int32) *guard {
	g := newGuardOf(s.name.Namespace, objects)
	g.simulation = s
	guards := map[int]bool{}
	for _, pod := range pods {
		guards[g.guarding(pod)] = true
	}
	for i := range g.totals {
		if guards[i] {
			g.totals[i].Replicas = max(g.totals[i].Replicas+scaled, 0)
		}
	}
	return g
}

// newGuardOf reads the budgets of a namespace.
func newGuardOf(namespace string, objects []client.Object) *guard {
	g := &guard{namespace: namespace, parents: map[string]*metav1.OwnerReference{}}
	for _, o := range objects {
		if set, ok := o.(*appsv1.ReplicaSet); ok {
			g.parents[set.Name] = metav1.GetControllerOfNoCopy(set)
		}
		if budget, ok := o.(*policyv1beta1.PodUnavailableBudget); ok && budget.Namespace == namespace {
			read, _ := pub.Read(budget.DeepCopy()) // what cannot be read protects nothing
			g.budgets = append(g.budgets, read)
			total := pub.Total{Replicas: read.Status.TotalReplicas}
			if read.Groups != nil && total.Replicas > 0 { // the status has how many groups there are
				total.Replicas *= read.Groups.GroupSize
			}
			g.totals = append(g.totals, total)
		}
	}
	return g
}

// ask admits the updates of the first pods for which the budgets have room.
func (g *guard) ask(ctx context.Context, pods []*corev1.Pod) error {
	for i, pod := range pods {
		at := g.guarding(pod)
		if at < 0 {
			continue
		}
		b := &g.budgets[at]
		counts, err := g.counts(ctx, at)
		if err != nil {
			return err
		}
		recounted := *b
		recounted.Status = pub.Recount(pub.Input{Budget: *b, Counts: counts, Total: g.totals[at], Now: g.clock}).Status
		verdict := pub.Review(recounted, pub.Disruption{
			Pod: pod, Operation: pub.Update, User: "kruise-manager", Policy: g.policy,
		}, g.clock)
		if !verdict.Allowed {
			return &workload.RefusedError{
				Admitted: i, Reason: "PodUnavailableBudget " + b.Name + ": " + verdict.Text,
			}
		}
		if *b = recounted; verdict.Record != nil {
			*b = b.Spend(*verdict.Record)
		}
	}
	return nil
}

// guarding returns which budget guards a pod; -1 for none.
func (g *guard) guarding(pod *corev1.Pod) int {
	var chain pub.Chain
	for owner := metav1.GetControllerOfNoCopy(pod); owner != nil; {
		version, _ := schema.ParseGroupVersion(owner.APIVersion) // without a group nothing matches
		chain = append(chain, pub.Target{Group: version.Group, Kind: owner.Kind, Name: owner.Name})
		if owner.Kind != "ReplicaSet" {
			break
		}
		owner = g.parents[owner.Name]
	}
	found := pub.Match(pod, chain, g.budgets)
	for i := range g.budgets {
		if found != nil && g.budgets[i].Name == found.Name {
			return i
		}
	}
	return -1
}

// counts returns the counts of the pods that a budget guards.
func (g *guard) counts(ctx context.Context, budget int) (*pub.Counts, error) {
	var list corev1.PodList
	if err := g.server.List(ctx, &list, client.InNamespace(g.namespace)); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var guarded []*corev1.Pod
	for i := range list.Items {
		if g.guarding(&list.Items[i]) == budget {
			guarded = append(guarded, &list.Items[i])
		}
	}
	return g.budgets[budget].Count(guarded, g.policy), nil
}
