// Package scope computes which pods API servers send to the pod webhook: from the contributions of its steps, the
// entries of a MutatingWebhookConfiguration. A pod that no step concerns is never sent, so that it waits for no answer,
// and is created while no replica of the webhook is up.
//
//	in := scope.Input{Client: client, Namespace: "kruise-system"}
//	for _, source := range scope.Sources(scope.SourceOptions{}) {
//		in.Contributions = append(in.Contributions, source.Contribute(objects[source.Kind]))
//	}
//	planned, err := scope.Plan(in)
//	configuration.Webhooks = planned.Entries
//
// A step contributes selections, which are the selectors of its objects, and conditions, which are expressions in CEL.
// A new step adds a file with its Source, and a line to Sources.
//
// An entry has one match condition with the alternatives of all contributions. A condition that is too long for one
// entry continues in further entries, and a pod that several of them select is sent by each. Conditions cannot read the
// labels of namespaces, only their names, so that each set of namespace labels that selections ask for has an entry of
// its own. What must not be missed (Fail) and what may be (Ignore) have entries of their own, too; the second excludes
// what the first selects, unless that takes several entries.
//
// Provisional returns the entry of one SidecarSet alone, by selectors. It is written before the set is stored, and is
// in force until the computed entries have the set.
//
// Laws:
//   - A pod is sent exactly if a contribution selects it. For SidecarSets: a set that is not paused selects the pod and
//     its namespace. For launch priorities: the pod asks for them, whether or not they differ.
//   - An object that cannot be read in full contributes what can be read, so that more pods are sent and none is
//     missed. An object of which nothing can be read is left out, with a note, because it would select every pod.
//   - The same objects give the same entries, in any order. The input is not changed.
//   - Pods of kube-system, of the webhook's own namespace, and of namespaces with the label control-plane are never
//     sent.
//   - No condition fails, whatever a pod lacks.
//   - Entries that would be too many or too long for API servers and for etcd are widened, with a note, and never
//     narrowed.
//
// When not to use it: in the webhook, which decides by the objects themselves.
package scope
