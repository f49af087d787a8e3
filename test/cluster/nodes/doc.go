// Package nodes runs a Kubernetes cluster of real nodes on one Linux machine, without Docker: a control plane and an
// image registry in the network of the machine, and three nodes.
//
// A node is a PID, a mount and a network namespace that live as long as one process does, the node's first; in it run a
// containerd with runc and a kubelet. Killing that process takes the node's programs, containers, mounts and network
// interfaces with it, by the kernel, also those of other processes. What remains for Down are a bridge, cgroups,
// sysctls and files.
//
// What a node has of its own: /proc, /run, /var/lib, /var/log, its cgroups, and its address on a bridge. What it shares
// with the machine: everything else of the file system, among it /tmp, where the hostpath volumes are.
//
// What differs from other clusters: no DNS and no kube-proxy. The kubernetes Service works, because the API server has
// its address; webhooks and aggregated APIs behind Services work, because the API server calls their endpoints. Every
// image of every registry is pulled from the cluster's own registry, and nothing from anywhere else.
//
// There is one such cluster per state directory and, its addresses being fixed, one per machine.
package nodes
