// Package replicas finds how many pods workloads of any kind want.
//
//	top, err := finder.Top(ctx, replicas.Of(pod.Namespace, metav1.GetControllerOf(pod)))
//	found, err := finder.Find(ctx, top) // found.Replicas, or found.Unknown, or found.Gone
//
// The replicas come from the scale subresource. Where the metadata of a kind is in the cache, see Watch, the scale of a
// workload is read once for each generation. Workloads of other kinds are read live, at most once a minute and a
// hundred in one namespace, so that no user has the others wait. A kind that is not served, is not namespaced, has no
// scale, or may not be read gives unknown replicas and no error.
//
// When not to use it: for a workload whose object is read anyway.
package replicas
