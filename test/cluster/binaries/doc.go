// Package binaries builds the programs of the test clusters (etcd, the Kubernetes components, containerd, runc and so
// on) from Go modules at pinned versions, and keeps them in a cache outside of the work tree.
//
// The versions are pinned by the nested modules below this directory, one per upstream project, so that the
// dependencies of those programs never reach the go.mod of the library. Nothing is downloaded but through the Go module
// proxy, and by [Cache.Download] for the demo.
//
// Layout of the cache, where <key> is a digest of the module's go.mod and go.sum, of the project's own code in it, of
// the build tags, and of the Go version:
//
//	$KRUISEKIT_CACHE (default: os.UserCacheDir()/kruisekit)
//	  bin/<module>-<key>/<program>    for instance bin/kubernetes-1f0c.../kube-apiserver
//	  envtest/<version>-<platform>/<program>    what was downloaded, for instance envtest/1.36.3-linux-amd64/etcd
//
// A program in the cache is complete: it is built under another name and renamed. Finding out that nothing has to be
// built costs a few file reads and no call of the go command.
//
// $KRUISEKIT_KUBERNETES chooses another minor version of those in kubernetes.versions, such as 1.34, for the programs
// of Kubernetes itself; etcd, containerd and kube-controllers stay. The module for it is made from the go.mod of that
// release, and kept in the cache:
//
//	modules/kubernetes-v1.34.4-<key>/go.mod
//
// When not to use it: for control planes of other versions. Point KUBEBUILDER_ASSETS to a directory with etcd,
// kube-apiserver and kubectl instead.
package binaries
