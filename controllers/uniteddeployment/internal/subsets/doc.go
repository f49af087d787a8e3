// Package subsets decides about the workloads of a UnitedDeployment, one for each subset. It covers the four kinds:
// CloneSet, both kinds of StatefulSet, and Deployment. It reads and writes nothing.
//
//	s, err := subsets.Read(ud, now)                        // the spec, or why nothing can be done with it
//	s.Add(kind, workloads)                                 // what the UnitedDeployment controls
//	s.Revisions, s.Pods[subset] = ...                      // pods where s.NeedsPods(child)
//	d, err := subsets.Plan(s)                              // the writes, in their order
//	...
//	status := s.Status(d, subsets.Outcome{Update: err, Fault: d.Fault()})
//
// Laws:
//   - A decision is a function of the snapshot. A snapshot at rest gives one without writes, whose status is that of
//     the object.
//   - An update of the numbers alone leaves all other fields alone. Labels and annotations of others stay.
//   - A workload whose revision, replicas, partition and patch are those that were rendered is not updated.
//   - Only what the UnitedDeployment controls is written.
//   - No input is changed, and no stored object makes a function panic.
package subsets
