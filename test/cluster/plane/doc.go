// Package plane runs a Kubernetes control plane: etcd and kube-apiserver, and on demand kube-controller-manager and
// kube-scheduler, with certificates of its own. All levels of test clusters stand on it.
//
// It does what controller-runtime's envtest does, and is separate from it because the other levels need what envtest
// does not offer: controllers and a scheduler, programs that outlive their starter, a given address, records for
// cleaning up.
//
// When not to use it: in tests. Those call cluster.Start, which chooses, shares and cleans up.
package plane
