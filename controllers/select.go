package controllers

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/internal/selection"
)

// SelectedKinds returns the kinds that Options.Selector is about: those whose objects different managers can reconcile
// in one cluster.
func SelectedKinds() []schema.GroupKind { return selection.Kinds() }

// Select returns a manager for single reconcilers, whose cache shows the objects that a selector matches. AddToManager
// does it by itself. Name the kind of the reconciler: it reads other kinds whole, such as the workloads of a
// UnitedDeployment. Objects of kinds that are not named are not selected.
//
//	kind := v1beta1.GroupVersion.WithKind("CloneSet").GroupKind()
//	err := r.SetupWithManager(ctx, controllers.Select(mgr, selector, kind), o)
func Select(mgr ctrl.Manager, selector labels.Selector, kinds ...schema.GroupKind) ctrl.Manager {
	return selection.Manager(mgr, selection.Of{Selector: selector, Kinds: kinds})
}

// selected are the kinds of which a reconciler sees what is selected: its own one, and all of them where it keeps the
// entries of webhooks.
func (e entry) selected() []schema.GroupKind {
	all, kind := selection.Kinds(), e.kind.GroupKind()
	switch {
	case slices.Contains(all, kind):
		return []schema.GroupKind{kind}
	case e.name == "podscope" || e.name == "disruptionscope":
		return all
	}
	return nil
}
