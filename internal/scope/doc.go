// Package scope computes which pods API servers send to the webhooks of pods: from the contributions of the steps, the
// entries of a webhook configuration. A pod that no entry selects waits for no answer, and is created while no replica
// of the webhook is up.
//
//	in := scope.Input{Client: client, Namespace: "kruise-system"}
//	for _, source := range scope.Sources(scope.SourceOptions{}) {
//		in.Contributions = append(in.Contributions, source.Contribute(objects[source.Kind]))
//	}
//	configuration.Webhooks = scope.Plan(in).Entries
//
// An object of a namespace contributes its namespace: all pods there are sent. A SidecarSet contributes a clause, which
// is its selector as an expression in CEL. A step whose pods show that they need it contributes a condition on the pod.
//
// Clauses and conditions are alternatives of one match condition, in one entry for what must not be missed (Fail) and
// in one for what may be (Ignore). Expressions cannot read the labels of namespaces, so that each namespaceSelector has
// entries of its own. Namespaces are listed in the namespaceSelector of a further entry, so that their number costs no
// compilation of expressions.
//
// Provisional returns the entry of one SidecarSet alone, by selectors. A Writer writes the entry before the set is
// stored. It is in force until the computed entries have the set.
//
// Laws:
//   - A pod is sent if a contribution selects it. Within bounds, a pod that is sent is selected by a SidecarSet, meets
//     a condition, or is in a contributed namespace.
//   - What a contribution selects to fail closed is sent by an entry that fails closed.
//   - An object that cannot be read in full contributes what can be read, so that more pods are sent and none is
//     missed. A SidecarSet of which nothing can be read is left out, with a note, because it would select every pod.
//   - The same objects give the same entries, in any order. The input is not changed.
//   - Pods of kube-system, of the webhook's own namespace, and of namespaces with the label control-plane are never
//     sent.
//   - No condition fails, whatever a pod lacks.
//   - Beyond a bound an entry sends all pods, with a note. Entries are never narrowed.
//
// When not to use it: in the webhook, which decides by the objects themselves.
package scope
