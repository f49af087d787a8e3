// Package resourcedistribution reconciles ResourceDistributions: copies of a Secret or a ConfigMap in many namespaces.
//
//	r, err := resourcedistribution.New(mgr.GetClient(), resourcedistribution.Options{})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3})
//
// Package distribution decides; this package reads and writes.
//
// # Writes
//
// A copy is created by a POST. A server-side apply would succeed where a foreign object has the name, and would take
// its fields over. An update is a strategic merge patch, and tests the UID and the version that the plan has seen, as a
// deletion does. So an object of another owner is never written, however much the cache lags.
//
// Requests run in batches of at most 64. A namespace in which a request fails stops no other, and is the last one in
// the next pass.
//
// # Reads
//
// For each kind and name that is distributed there is one watch of metadata with a field selector, as kubelets watch
// single Secrets. The manager keeps neither the content of a Secret in memory nor anything of Secrets with other names.
// The watch ends with the last distribution of the name. With resourceNames in a ClusterRole an administrator restricts
// it to chosen names.
//
// The content of a copy is read once after the start of the process, and again where another writer has changed the
// copy.
//
// # Costs
//
// A write for each copy and one for the status. A pass without a change sends no request.
//
// When not to use it: without the rights of config/resourcedistribution. The status then has the condition
// GetResourceFailed.
package resourcedistribution
