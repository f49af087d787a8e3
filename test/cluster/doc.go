// Package cluster gives tests a Kubernetes cluster, of the cheapest level that shows what is under test:
//
//   - [ControlPlane]: etcd and kube-apiserver alone. Seconds, no privileges. For reconcilers, webhooks and CRDs.
//   - [Simulated]: a whole control plane with nodes that exist only in the API (see test/cluster/simulated). For
//     rollouts and scheduling at scale, where nothing in a pod has to run.
//   - [Real]: three nodes with a kubelet and containerd each (see test/cluster/nodes). For what depends on kubelets,
//     container runtimes, images and networks. Linux and root.
//
// A level that cannot run here skips the test and says why. With KRUISEKIT_REQUIRE_CLUSTER=1 it fails it instead, so
// that a CI does not test nothing and call it a success.
//
//	func TestReconciler(t *testing.T) {
//		c := cluster.Start(t, cluster.Options{CRDDirs: []string{"../../config/crd/bases"}, Scheme: scheme})
//		namespace := c.Namespace(t)
//		...
//	}
//
// The control plane is shared by all tests of a process, and dies with it. A run of a whole level shares one between
// its processes, see [Hold]. CRDs are installed once, and namespaces stay when their tests end: the control plane is
// thrown away as a whole.
//
// Hence a test keeps to a namespace of its own: managers get cache.Options.DefaultNamespaces, and cluster-wide objects
// unique names or a label to select them by. A test that cannot live with others, such as that of a conversion webhook,
// asks for a control plane of its own ([Options.Private]).
package cluster
