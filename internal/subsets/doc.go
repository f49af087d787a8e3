// Package subsets renders the workloads of a UnitedDeployment, one for each subset, and reads what such workloads report. It covers the
// four kinds: CloneSet, both kinds of StatefulSet, and Deployment.
//
//	template, err := subsets.Parse(&ud.Spec.Template)                  // once for each pass
//	object, err := template.Render(subsets.Wanted{Owner: ud, Subset: &subset, Revision: name, Replicas: 3})
//	...
//	child := subsets.Observe(template.Kind, stored)                    // replicas, ready, updated
//	if !subsets.Covers(stored, object) { ... }                         // something is to be written
//
// Laws:
//   - A rendered object has only the fields that the UnitedDeployment decides. Applied on the server, it leaves the fields of others alone.
//   - An object covers what was rendered for it, whatever defaults and fields of others it has besides.
//   - No input is changed, and no stored object makes a function panic.
package subsets
