// Package revision keeps the history of a workload's pod template in ControllerRevisions: it encodes a template,
// names it, finds it again among the stored revisions, and selects the stored revisions to delete.
//
// Everything is a value: the caller lists the ControllerRevisions and makes the writes.
//
//	data, err := revision.Encode(&set.Spec.Template)
//	...
//	r := revision.Resolve(revision.Input{
//		Owner: set.Name, Data: data, Have: stored,
//		Current: set.Status.CurrentRevision, Collisions: set.Status.CollisionCount,
//	})
//	store, err := revision.Store(revision.Wanted{Resolution: r, Namespace: set.Namespace, Owner: owner})
//	... // run store, as package driver does: it creates a revision, or makes an older one the newest
//	latest := store.Newest()
//
// Two templates are the same revision when they make the same pod. Stored bytes differ for reasons that are no
// change: another release of the type library encodes a zero value otherwise, or the API server filled in its
// defaults or rounded an amount. A revision for such a difference would restart every pod of every workload when a
// controller is upgraded, or takes over from another controller; Same reports the real changes.
//
// A workload with several templates, as of the leader and the workers of a group, stores them by role in one revision:
//
//	data, err := revision.EncodeRoles(map[string]*corev1.PodTemplateSpec{"leader": leader, "worker": worker})
//
// Resolve, SameData and SameRoles compare such revisions role by role, however the resource itself keeps its templates:
// in a list, as fields of their own, or below other fields.
//
// An operator whose revisions have the templates where the resource has them, as those that it stored before it used
// this package, says where that is. Its data is then compared with the same care:
//
//	layout := &revision.Layout{Templates: []revision.Place{{Path: "spec.roles[name].template"}}}
//	data, err := layout.Encode(templates) // by role
//	templates, err = layout.Decode(stored.Data.Raw)
//	r := revision.Resolve(revision.Input{..., Same: layout.Same}) // package workload: Input.Layout
//
// What is neither a template nor ignored counts as it is: a second template besides spec.template is a change whenever
// its bytes mean another value. Encode of a Layout stores templates alone. For data that has more, encode the fields
// that pods depend on, and leave out those that they do not, as replicas: the hash is that of any bytes, and Same
// compares any data. A nil Layout ignores claim templates, which some releases of the reference store, and which no
// running pod changes.
//
// The current revision is the one that pods are updated from. Promote is the rule by which the update revision becomes
// the current one.
//
// A template may have fields that the Go types of this build lack. Decode keeps them in the template, under an
// annotation that exists in memory alone, and Encode stores them: see [KeepUnknownFields].
//
// Laws:
//   - The order of the stored revisions does not matter.
//   - A template that is stored is never created again, and the newest revision always is the wanted template.
//   - After the write Resolve returns Use.
//   - A revision that a pod runs is never trimmed.
//
// When not to use it: for anything but pod templates, whose meaning is all that Same compares.
package revision
