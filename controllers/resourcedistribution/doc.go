// Package resourcedistribution reconciles ResourceDistributions: copies of a Secret or a ConfigMap in many namespaces.
//
//	r, err := resourcedistribution.New(mgr.GetClient(), resourcedistribution.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// Laws:
//   - An object that the distribution does not control is never written and never deleted. A creation is exclusive: a
//     server-side apply would take over an object of that name. An update replaces the content as a whole, where an
//     apply keeps the keys that another writer added, and tests the version that was read, as a deletion does.
//   - The failure of one namespace changes nothing in another. Namespaces that failed come last in the next pass.
//   - A copy that another writer changes is restored at once, and again after two seconds.
//   - A process reads each distribution past the cache before it writes the first copy of it: a new leader, whose cache
//     may show an older spec, neither deletes nor changes copies that follow from the newer one.
//   - A pass without a change sends no request. Otherwise a copy costs at most one read and one write, and the status
//     costs one write. After the start of the process each copy is read once.
//   - Whatever the API server stores gives a status, whose names and texts are bounded.
//
// For each kind and name that is distributed there is one watch of metadata with a field selector, as kubelets watch
// single Secrets. It also shows objects of other owners, and copies that the reference made, which no label marks. The
// manager keeps no content of a Secret in memory. The watch ends with the manager. With resourceNames in a ClusterRole
// an administrator restricts it to chosen names.
//
// When not to use it: without the rights of config/resourcedistribution. The status then has the condition
// GetResourceFailed.
package resourcedistribution
