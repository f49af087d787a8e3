// Package daemon adds the parts of a node daemon to a controller-runtime manager. The parts pull images, restart
// containers and report containers of the node that the daemon runs on.
//
//	runtimes, err := cri.Detect(ctx, cri.Search{Root: "/run"}, cri.Options{})
//	...
//	node := daemon.Node{Name: os.Getenv("NODE_NAME"), Runtimes: runtimes}
//	// A scheme, and a cache of this node alone; add addresses.
//	o, err := daemon.ManagerOptions(node.Name, daemon.Options{})
//	...
//	mgr, err := ctrl.NewManager(config, o)
//	...
//	err = daemon.AddToManager(ctx, mgr, node, daemon.Options{})
//	checks, err := daemon.Checks(ctx, mgr, node, daemon.Options{}) // for a health endpoint
//
// What holds:
//
//   - The cache has objects of the own node, and no others: API servers send a daemon nothing else. A read of what it
//     does not have is an error, and not the beginning of a watch on a cluster.
//   - Secrets are read one by one, and never watched.
//   - A part whose kind is not installed is left out, with a line in the log, and is added when the kind is installed.
//
// Do not use it in the manager of a control plane: every node has a daemon of its own, without election of a leader.
// For one part alone, use its package.
package daemon
