// Package cri speaks to the container runtime of a node through CRI v1: containers of a pod, stop, exec, images, pulls.
// It takes and returns types of its own, so that its callers see neither gRPC nor protobuf.
//
//	runtimes, err := cri.Detect(ctx, cri.Search{Root: "/run"}, cri.Options{})
//	...
//	defer runtimes.Close()
//	runtime := runtimes.Default()
//	containers, err := runtime.Containers(ctx, cri.Query{PodUID: string(pod.UID), Name: "web"}) // the newest first
//	...
//	err = runtime.Stop(ctx, containers[0].ID, 30*time.Second)
//	if errors.Is(err, cri.ErrUnavailable) {
//		... // try again later
//	}
//
// [Open] takes an endpoint that is known. A [Runtime] has many methods; declare an interface of the few that you call.
//
// # What holds
//
//   - Every call ends: in 5 seconds, Stop and Exec in 5 seconds and the time they are given. A Pull, and an Exec
//     without a limit, last as long as their context. When the context ends, the call ends at once, at the runtime too.
//   - When a runtime restarts, only the calls in flight fail, with [ErrUnavailable]. Later calls wait for the runtime,
//     for 5 seconds at most. The package reconnects within 2 seconds of the runtime's return, also without a call.
//     [Runtime.Connected] reports the new connection, so that callers can try again.
//   - A container that ends while its pod is listed is left out; it is no error.
//   - An error that a caller can act on is one of the package's: [ErrNotFound], [ErrUnavailable], [ErrCredentials],
//     [ErrExecTimeout], [ErrNoSocket]; and [errors.ErrUnsupported] where a runtime lacks a call.
//   - What is passed in is not changed, and not kept. All methods may be called at the same time.
//   - No credentials in errors, nor in what a [Credentials] prints.
//
// # When not to use it
//
// To run pods: there is no call that makes a sandbox or a container. To ask for anything that the API server knows:
// pods and their status come cheaper from there. From outside of the node: endpoints are local, without encryption.
package cri
