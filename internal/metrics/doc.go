// Package metrics has the metrics of the reconcilers: workloads that are stalled, and the sizes of caches.
//
//	stalled, err := metrics.RegisterStalled(registerer)
//	err = mgr.Add(stalled.Follow(mgr.GetCache(), kind, metrics.StalledOptions{})) // a kind that reports in its status
//	stalled.Set(kind, name, metrics.Reason{...})                                  // a kind that does not
//
//	sizes := metrics.NewSizes()
//	registerer.MustRegister(sizes)
//	options.Cache.DefaultTransform = sizes.Counting(options.Cache.DefaultTransform)
//
//	writes, err := metrics.Register(registerer, prometheus.NewCounter(...)) // once for several parts of a process
//
// The metrics of stalled workloads follow events of the cache that the reconcilers read, cost no request, and keep only
// the objects that are stalled or whose status is of an older generation. They have values where the reconcilers run.
// Their labels are bounded: the reasons of a kind beyond the first ones count as "other", because another client may
// write a status.
//
// A transform gets each object that enters a cache, and none that leaves the cache: an object counts until the garbage
// collector has freed it. So the sizes need neither events nor informers, also in replicas that do not lead, and
// include what is held beside a cache. Sizes are those of an encoded object; memory is up to twice of that.
package metrics
