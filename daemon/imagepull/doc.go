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
//     just started. A process that ends cancels its pulls, and the next one restarts them, and those whose result was
//     not written.
//   - The reconciler cancels a pull at the runtime when its tag leaves the NodeImage, gets another version, or gets a
//     result from another client. It writes no status and emits no event for such a pull.
//   - The reconciler patches a status that differs from the wanted one, also after the write of another client. It
//     writes at most five times at once, and then once in two seconds. A result waits for its write.
//     After the write of another client in between, the reconciler reads the NodeImage before it patches.
//   - The reconciler emits the event of a result after it has written the result, once.
//   - Secrets and the node's keyring are asked in each attempt. A pull uses the secrets of its own jobs alone. 64
//     secrets are remembered for five minutes, or until a registry refuses what they say; an attempt reads at most 64.
//     Malformed secrets are skipped, and named in the failure. All credentials are tried, in their order; only where
//     there are none, the pull is anonymous.
//   - A pull waits for a runtime that is away, or goes away. An attempt that the runtime does not answer does not
//     count, and is made again after five seconds. Where the runtime has not answered for the timeout of an attempt, an
//     attempt has failed, so that every pull ends.
//   - With MinFreePercent, no pull begins while less than that share of the file system of images is free, in bytes or
//     in inodes, and pulls under way are stopped within seconds. Either is an attempt that failed. An image that the
//     node has needs no room. Where the file system is not visible there is no bound, as a line of log and a metric
//     say.
//   - When nothing changes, nothing is called: neither the runtime nor the API server.
//
// # How far a pull is
//
// No runtime says it. The progress of a pull is 0, and 100 after its end. Between its attempts a pull has the message
// "attempt 1 of 4 failed", with the failure.
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
