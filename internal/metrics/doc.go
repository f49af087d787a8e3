// Package metrics has the metrics of stalled workloads and of parts that are left out, and registers others.
//
//	stalled, err := metrics.RegisterStalled(registerer)
//	err = mgr.Add(stalled.Follow(mgr.GetCache(), kind, metrics.StalledOptions{})) // a kind that reports in its status
//	stalled.Set(kind, name, metrics.Reason{...})                                  // a kind that does not
//
//	writes, err := metrics.Register(registerer, prometheus.NewCounter(...)) // once for several parts of a process
//
// The metrics of stalled workloads follow events of the cache that the reconcilers read, cost no request, and keep only
// the objects that are stalled or whose status is of an older generation. They have values where the reconcilers run.
// Their labels are bounded: the reasons of a kind beyond the first ones count as "other", because another client may
// write a status.
package metrics
