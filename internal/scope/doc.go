// Package scope computes for which pods API servers have to ask the pod webhook: from the SidecarSets that are there, and from
// what else the webhook does, the entries of a MutatingWebhookConfiguration. A pod that nothing concerns is never sent, so
// that it waits for nobody, and is created while no replica of the webhook is up.
//
//	computed, err := scope.Compute(scope.Input{Sets: sets, Client: client, Namespace: "kruise-system", Owned: true, Launch: true})
//	configuration.Webhooks = computed.Entries
//
// An entry says which pods it is about in one match condition, the alternatives of all sets. Labels of namespaces
// are not known there, so each set of them that sets ask for has an entry of its own, but for the names of namespaces, which
// are. What must not be missed (Fail) and what may be (Ignore) are entries of their own, too; the second leaves out what
// the first one takes.
//
// Ahead gives the entry of one set alone, by selectors. It is written before the set is there, and is in force until the computed
// ones have it.
//
// Laws:
//   - A pod is sent exactly if a set that is not paused selects it and its namespace, or if another step concerns it. For
//     launch priorities that is: if it asks for them, be they all the same.
//   - A set that cannot be read in full is taken by what can be read, so that more pods are sent and none is missed.
//     One of which nothing can be read is left out, with a note: it would stand in the way of every pod.
//   - The same sets give the same entries, in whatever order they come. Nothing of the input is changed.
//   - Never sent are pods of kube-system, of the webhook's own namespace, and of namespaces with the label control-plane.
//   - No condition fails, whatever is missing in a pod.
//   - What would be too long for API servers is made wider, with a note, and never narrower.
//
// When not to use it: in the webhook. That decides by the sets themselves.
package scope
