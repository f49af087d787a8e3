// Package containerd has a real containerd for a test, without a cluster around it, and a registry that can be as bad
// as real ones are. It needs Linux and root; where it cannot be, [Programs] skips the test.
//
//	programs := containerd.Programs(t)
//	registry := containerd.NewRegistry(t)
//	... // push images to registry.URL, with the package test/cluster/image
//	node := containerd.Start(t, programs, registry.URL)
//	runtimes, err := cri.Detect(ctx, cri.Search{Root: node.Run()}, cri.Options{})
//
// Containers are made by the runc of the test cluster, or, with KRUISEKIT_OCI_RUNTIME=/usr/bin/crun, by that program.
package containerd
