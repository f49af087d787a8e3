package cluster

import "k8s.io/apimachinery/pkg/runtime"

// Level says how much of a cluster there is.
type Level string

const (
	// ControlPlane is etcd and kube-apiserver. There is no controller: no garbage collection, no service accounts, no
	// namespace deletion.
	ControlPlane Level = "control-plane"
	// Simulated is a whole control plane with simulated nodes. It is always private.
	Simulated Level = "simulated"
	// Real is a cluster of real nodes, one per machine, shared by all tests.
	Real Level = "real"
)

// Options of Start. The zero value is a shared control plane.
type Options struct {
	// Level defaults to ControlPlane.
	Level Level
	// Private gives the test a control plane of its own, which ends with the test. Not for Real.
	Private bool
	// CRDDirs are directories, or files, with CRDs to install.
	CRDDirs []string
	// Scheme of Cluster.Client. Defaults to that of client-go, which knows the core kinds.
	Scheme *runtime.Scheme
	// Nodes is how many nodes are simulated, 3 by default. For Simulated alone.
	Nodes int
	// APIServerFlags are added to those of kube-apiserver. For private planes alone.
	APIServerFlags []string
}

func (o Options) withDefaults() Options {
	if o.Level == "" {
		o.Level = ControlPlane
	}
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	return o
}
