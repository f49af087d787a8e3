package inplace

// Installation is what a cluster offers to in-place updates. State it once, and derive from it the policies of all
// controllers that update pods, so that they agree on who restarts a container.
// The zero value is a cluster without a node daemon and without resizes.
type Installation struct {
	// EnvDaemon means that a daemon on each node restarts containers whose environment comes from labels or annotations
	// that change. Package containerrestart has what such a daemon decides.
	EnvDaemon bool
	// Resize means that API servers and nodes change cpu and memory of running pods.
	Resize bool
	// ResizePods means that they change those of the pod as a whole, too (spec.resources), as since Kubernetes 1.36.
	ResizePods bool
}

// Policy returns the policy that makes use of all that is installed, and of nothing else.
func (i Installation) Policy() Policy {
	p := Policy{IgnoreResources: !i.Resize, PodResources: i.ResizePods}
	if i.EnvDaemon {
		p.Env = EnvRestart
	}
	if i.Resize {
		p.Resources = ResourcesReplaced
	}
	return p
}
