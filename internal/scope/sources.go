package scope

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/pub"
)

// SourceOptions are the options of the steps that change which pods they concern.
type SourceOptions struct {
	// ReadinessGateForAll adds the gate KruisePodReady to every pod.
	ReadinessGateForAll bool
	// NoBudgets leaves pods without the stamp of their budget.
	NoBudgets bool
	// NoSpreads leaves pods without the subset of their WorkloadSpread.
	NoSpreads bool
	// EnhancedLiveness moves the liveness probes of pods that ask for it.
	EnhancedLiveness bool
	// Serverless writes the probes of PodProbeMarkers into new pods.
	Serverless bool
}

// Sources returns the source of every step. A new step adds a line; the order is that of the alternatives in an
// expression.
func Sources(o SourceOptions) []Source {
	all := []Source{Sidecars(), Launch(), Readiness(o.ReadinessGateForAll)}
	if !o.NoBudgets {
		all = append(all, Budgets())
	}
	if !o.NoSpreads {
		all = append(all, Spreads())
	}
	all = append(all, States())
	if o.EnhancedLiveness {
		all = append(all, Liveness())
	}
	if o.Serverless {
		all = append(all, Probes())
	}
	return all
}

// DisruptionSources returns the sources of the entries of disruptions: of budgets, and of WorkloadSpreads unless
// noSpreads.
func DisruptionSources(noSpreads bool) []Source {
	all := []Source{{Step: "budget", Kind: BudgetKind(), concerns: guards(fail)}}
	if !noSpreads {
		all = append(all, Source{Step: "spread", Kind: SpreadKind(), concerns: countsDepartures})
	}
	return all
}

// Sidecars is the source of the step that injects SidecarSets, which select pods of all namespaces.
func Sidecars() Source { return Source{Step: "sidecars", Kind: Kind(), selections: sidecarSelections} }

// Budgets is the source of the step that stamps new pods with their budget. Without an answer pods are created without
// the stamp, which the reconciler of budgets adds.
func Budgets() Source { return Source{Step: "budget", Kind: BudgetKind(), concerns: guards(ignore)} }

// Spreads is the source of the step that gives new pods their subsets. Without an answer pods are created without a
// subset, as they are where no subset has a place.
func Spreads() Source { return Source{Step: "spread", Kind: SpreadKind(), concerns: spreads} }

// States is the source of the step that steers pods back to where they were. Without an answer no pod is created whose
// PersistentPodState has a required topology; with a preferred topology alone the pod is created without.
func States() Source { return Source{Step: "place", Kind: podstates.Kind(), concerns: steers} }

// Probes is the source of the step that writes probes into new pods, for the providers of virtual nodes. Without an
// answer pods are created without the probes.
func Probes() Source {
	kind := v1alpha1.GroupVersion.WithKind("PodProbeMarker")
	return Source{Step: "probes", Kind: kind, concerns: func(object *unstructured.Unstructured) Policy {
		m := stored.Whole[v1alpha1.PodProbeMarker](object)
		return when(m != nil && podprobe.Stamps(m), ignore)
	}}
}

// BudgetKind is that of PodUnavailableBudgets.
func BudgetKind() schema.GroupVersionKind {
	return policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget")
}

// SpreadKind is that of WorkloadSpreads.
func SpreadKind() schema.GroupVersionKind {
	return appsv1beta1.GroupVersion.WithKind("WorkloadSpread")
}

// guards returns the policy for a budget that guards pods. A budget that cannot be read guards none, as in package pub.
func guards(policy Policy) func(*unstructured.Unstructured) Policy {
	return func(object *unstructured.Unstructured) Policy {
		budget, invalid, err := stored.Decode[policyv1beta1.PodUnavailableBudget](object)
		if err != nil || invalid != nil {
			return ""
		}
		b, _ := pub.Read(budget)
		return when(b.Selector != nil || b.Target != nil, policy)
	}
}

// spreads ignores a WorkloadSpread that terminates or has no target.
func spreads(object *unstructured.Unstructured) Policy {
	ws, _, err := stored.Decode[appsv1beta1.WorkloadSpread](object)
	return when(err == nil && ws.Spec.TargetReference != nil && ws.DeletionTimestamp == nil, ignore)
}

// countsDepartures ignores a WorkloadSpread whose counts no deletion changes: ordinals count nothing, and a subset
// without a limit has no places.
func countsDepartures(object *unstructured.Unstructured) Policy {
	ws, _, err := stored.Decode[appsv1beta1.WorkloadSpread](object)
	return when(err == nil && ws.DeletionTimestamp == nil &&
		ws.Spec.TargetReference != nil && ws.Spec.TargetReference.Kind != "StatefulSet" &&
		slices.ContainsFunc(ws.Spec.Subsets, func(s appsv1beta1.WorkloadSpreadSubset) bool { return s.MaxReplicas != nil }),
		ignore)
}

func steers(object *unstructured.Unstructured) Policy {
	s := stored.Whole[podstate.State](object)
	if s == nil || s.DeletionTimestamp != nil {
		return ""
	}
	_, parsed := podstate.TargetOf(s)
	if s.Spec.RequiredPersistentTopology != nil {
		return when(parsed, fail)
	}
	return when(parsed, ignore)
}

func when(concerns bool, policy Policy) Policy {
	if concerns {
		return policy
	}
	return ""
}
