// Package subsets decides about the workloads of a UnitedDeployment, one for each subset. It covers the four kinds:
// CloneSet, both kinds of StatefulSet, and Deployment. It reads and writes nothing.
//
//	s, err := subsets.Read(ud, now)                        // the spec, or why nothing can be done with it
//	s.Add(kind, workloads)                                 // what the UnitedDeployment controls
//	s.Revisions, s.Pods[subset] = ...                      // pods where s.NeedsPods(child)
//	p, err := subsets.Plan(s)                              // the writes, in their order
//	...
//	status := s.Status(p, subsets.Outcome{Update: err, Fault: p.Fault()})
//
// Parse, Render and Covers are the parts of it that concern one workload: the template of the UnitedDeployment, the
// workload of a subset, and whether a stored workload has all fields of it.
//
// Laws:
//   - A pass is a function of the snapshot. A snapshot at rest gives a pass without writes, whose status is that of the
//     object.
//   - A rendered object has only the fields that the UnitedDeployment decides. Applied on the server, it leaves the
//     fields of others alone.
//   - An object covers what was rendered for it, whatever defaults and fields of others it has besides.
//   - Only what the UnitedDeployment controls is written.
//   - No input is changed, and no stored object makes a function panic.
package subsets
