// Package binaries builds the programs of the test clusters (etcd, the Kubernetes components, containerd, runc and so
// on) from Go modules at pinned versions, and keeps them in a cache outside of the work tree.
//
// The versions are pinned by the nested modules below this directory, one per upstream project, so that the
// dependencies of those programs never reach the go.mod of the library. Nothing is downloaded but through the Go module
// proxy.
//
// Layout of the cache, where <key> is a digest of the module's go.mod and go.sum, of the project's own code in it, and
// the Go version:
//
//	$KRUISEKIT_CACHE (default: os.UserCacheDir()/kruisekit)
//	  bin/<module>-<key>/<program>    for instance bin/kubernetes-1f0c.../kube-apiserver
//
// A program in the cache is complete: it is built under another name and renamed. Finding out that nothing has to be
// built costs a few file reads and no call of the go command.
//
// When not to use it: for control planes of a version other than the pinned one. Point KUBEBUILDER_ASSETS to a
// directory with etcd, kube-apiserver and kubectl instead.
package binaries
