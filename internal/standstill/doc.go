// Package standstill counts workloads that stand still, as metrics.
//
//	metrics, err := standstill.Register(registerer)
//	err = mgr.Add(metrics.Follow(mgr.GetCache(), kind, standstill.Options{})) // a kind that reports in its status
//	metrics.Set(kind, name, standstill.Reason{...})                          // a kind that does not
//
// The metrics follow events of the cache that the reconcilers read, cost no request, and keep only the objects that
// stand still or whose spec no status speaks of yet. They have values where the reconcilers run.
//
// Labels are bounded: the reasons of a kind beyond the first ones count as "other", because a status may be written by
// others.
package standstill
