package pub

import (
	"slices"

	"github.com/kruisekit/kruisekit/inplace"
)

// Policy is what the installation offers. Give one policy to all functions. The zero value is the default of the
// reference.
type Policy struct {
	// Installed is what updates in place rely on: with EnvDaemon, metadata that feeds environment variables restarts
	// containers; with Resize, a pod whose resize is under way is unavailable.
	Installed inplace.Installation
	// Resizes makes RESIZE an operation of its own, which only budgets protect that list it. Without it, budgets that
	// protect UPDATE protect RESIZE too.
	Resizes bool
	// ExemptUsers are never refused. Their disruptions are recorded, so that the disruptions of other users wait.
	// SystemUsers is the list for most installations; without a list no user is exempt, as in the reference.
	ExemptUsers []string
}

// Exempts reports whether a user is never refused.
func (p Policy) Exempts(user string) bool { return slices.Contains(p.ExemptUsers, user) }

// SystemUsers returns the users of Kubernetes that delete pods without a choice: the scheduler, which preempts for pods
// of a higher priority, and the controllers of taints, of pods without a node, of deleted owners and of deleted
// namespaces. A budget that refuses them keeps its pods on a node, and its namespace, for as long as the budget's owner
// wants.
//
// Controllers of workloads, which have a choice, are not in the list. So the list lacks system:kube-controller-manager,
// the user of all controllers where none has a service account. Kubelets need no exemption: they delete pods that
// terminate already, which spend nothing.
func SystemUsers() []string {
	const controller = "system:serviceaccount:kube-system:"
	return []string{
		"system:kube-scheduler",
		controller + "node-controller",
		controller + "taint-eviction-controller",
		controller + "device-taint-eviction-controller",
		controller + "pod-garbage-collector",
		controller + "generic-garbage-collector",
		controller + "namespace-controller",
	}
}
