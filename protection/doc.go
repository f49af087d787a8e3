// Package protection decides whether an object may be deleted that the label policy.kruise.io/delete-protection
// protects.
//
//	kind, ok := protection.KindOf("apps", "Deployment")
//	...
//	verdict := protection.Decide(protection.Input{
//		Kind: kind, Object: deployment, Replicas: deployment.Spec.Replicas, User: user,
//	})
//	if verdict.Refused() {
//		return apierrors.NewForbidden(resource, deployment.Name, errors.New(verdict.Message))
//	}
//
// Kinds is the table of the protected kinds. To protect another kind, add one line there: Decide, the webhooks, the
// policies of config/protection and their tests read this table.
//
// Laws:
//   - Decide refuses nothing without the label, and nothing that is terminating already.
//   - Decide counts dependents only where the answer depends on them: in the order of the table, and none after the
//     first that exist.
//   - What cannot be counted is refused.
//   - A deletion is judged where it starts. What follows from it is not refused: objects of a terminating namespace,
//     unless the policy holds namespaces, and dependents of a workload that the garbage collector deletes.
//   - Every refusal has the text of DeletionProtectionMessage.
//
// Do not use it to keep pods available: evictions and deletions of pods are for budgets.
package protection
