// Package selection shows a reconciler or a webhook only the objects of some kinds that a selector of labels matches.
// An object that loses its label looks deleted, and one that gets it looks created.
//
//	mgr = selection.Manager(mgr, selection.Of{Selector: selector, Kinds: []schema.GroupKind{kind}})
//	err := r.SetupWithManager(ctx, mgr, controller.Options{})
//
// The cache has the other objects of these kinds as well: a reconciler of another kind reads them, such as the
// workloads of a UnitedDeployment. Reads past the cache are not filtered: they find out whether an object exists.
package selection
