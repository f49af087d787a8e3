// Package imagepull is a node's side of image pulls: it has the container runtime pull what the NodeImage of its node
// asks for, and writes there how each pull goes. What to pull and what to try next is decided by the package imagepull
// at the root of this module; this one has the runtime, the clock and the API server.
//
//	r, err := imagepull.New(mgr.GetClient(), node, runtimes.Default(), imagepull.Options{Keyring: keyring, MaxPulls: 3})
//	...
//	err = r.SetupWithManager(ctx, mgr, controller.Options{})
//
// The manager's cache needs no other NodeImages, see [CacheOf], and should read no Secrets.
//
// # What holds
//
//   - At most MaxPulls attempts run at the same time, those that were cancelled and have not returned included. Of
//     those that wait, one goes first whose namespace has the fewest under way, and then one whose registry has.
//     Neither a namespace nor a registry alone takes all places, if there are three or more. Pulls that pause between
//     attempts take none.
//   - The status is the memory. A tag with a result for its version is not pulled again, also not by a process that has
//     just started. A process that ends writes the results that it has, as its last write. The next process restarts
//     the other pulls.
//   - The reconciler cancels a pull at the runtime when its tag leaves the NodeImage, gets another version, or gets a
//     result from another client. It writes no status and emits no event for such a pull.
//   - The reconciler patches a status that differs from the wanted one, also after the write of another client. It
//     writes at most five times at once, and then once in two seconds. A result that waits for its write is not lost.
//     After the write of another client in between, the reconciler reads the NodeImage before it patches.
//   - The reconciler emits the event of a result after it has written the result, once.
//   - Secrets and the node's keyring are asked in each attempt. A pull uses the secrets of its own jobs alone. Secrets
//     are remembered for five minutes and up to 4 MiB in all, or until a registry refuses what they say; an attempt
//     reads at most 64. Malformed secrets are skipped, and named in the failure. All credentials are tried, in their
//     order; only where there are none, the pull is anonymous.
//   - A pull waits for a runtime that is away, or goes away, and is tried as soon as the connection is back. Where the
//     runtime is connected and does not answer, after pauses of up to 30 seconds. Waiting for as long as an attempt may
//     take (10 minutes by default) counts as an attempt that failed, also for a pull that has not had its turn, so that
//     every pull ends.
//   - With MinFreePercent, no pull begins while less than that share of the file system of images is free, in bytes or
//     in inodes. Pulls under way are stopped within seconds, which counts as an attempt that failed. Close to the bound
//     each namespace pulls one image at a time. An image that the node has needs no room. Pulls wait for room as they
//     wait for a runtime: for as long as an attempt may take is an attempt that failed. The status of a pull that waits
//     is written once for each of these attempts. The reconciler looks again every 30 seconds. Where the file system is
//     not visible there is no bound, as a line of log and a metric say.
//   - When nothing changes, nothing is called: neither the runtime nor the API server.
//
// # How far a pull is
//
// No runtime says it. The progress of a pull is 0, and 100 after its end. What is known is written instead: from its
// second minute on a pull has the message "pulling for 2m0s, attempt 1 of 4", with the failure of the attempt before,
// if there was one. All messages are renewed at once, once a minute, which is one write. For a pull that takes more
// than five minutes, the reconciler emits the event PullImageSlow, once.
//
// The event PullImageNoRoom reports pulls that wait for room, each pull once, and at most one event in ten minutes.
//
// No runtime reports how large an image is before it is pulled, and how much of a disk a pull has written. So there is
// no bound for one image, and none for the bytes of one namespace. An image that turns out too large is not removed:
// the runtime removes all references to an image at once, also those that a pod or another job is about to use. The
// kubelet collects images that no pod uses.
//
// The first time that all tags of a node have ended, firstSyncStatus says when and how. It does not change any more.
//
// # When not to use it
//
// Beside the daemon of OpenKruise: both would pull, and write the same status. For pods: their images are pulled by
// kubelets, which look at nothing here.
package imagepull
