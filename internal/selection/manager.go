package selection

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
)

// Of is what is shown.
type Of struct {
	// Selector matches the labels of objects. Nil matches all.
	Selector labels.Selector
	// Kinds are those that the Selector is about, in all their versions.
	Kinds []schema.GroupKind
}

// Manager returns a manager whose cache shows the selected objects. It is mgr itself where everything is selected.
func Manager(mgr ctrl.Manager, of Of) ctrl.Manager {
	if of.Selector == nil || of.Selector.Empty() || len(of.Kinds) == 0 {
		return mgr
	}
	return manager{mgr, selected{mgr.GetCache(), of, mgr.GetScheme()}}
}

// manager is a manager with another cache.
type manager struct {
	ctrl.Manager

	cache selected
}

// GetCache returns the cache that shows the selected objects.
func (m manager) GetCache() cache.Cache { return m.cache }

// Kinds are the kinds whose objects different managers can reconcile in one cluster. Of the other kinds, and of what is
// done for pods whatever owns them, a cluster has one reconciler.
func Kinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, kind := range []string{
		"AdvancedCronJob", "BroadcastJob", "CloneSet", "DaemonSet", "EphemeralJob", "ResourceDistribution", "SidecarSet",
		"StatefulSet", "UnitedDeployment", "WorkloadSpread",
	} {
		kinds = append(kinds, schema.GroupKind{Group: appsv1beta1.GroupVersion.Group, Kind: kind})
	}
	return append(kinds, schema.GroupKind{Group: policyv1beta1.GroupVersion.Group, Kind: "PodUnavailableBudget"})
}
