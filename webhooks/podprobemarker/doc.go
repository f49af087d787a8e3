// Package podprobemarker serves the validating admission webhook of PodProbeMarker. The rules are those of package podprobe.
//
//	err := podprobemarker.New(podprobemarker.Options{}).SetupWithManager(mgr)
//
// Laws:
//   - A rejection names every fault with its path, and each fault is a cause.
//   - An update is not rejected for a fault that the stored marker has already. The fault is a warning then.
//   - An update of a marker that is being deleted is admitted, so that controllers can remove finalizers.
//   - Nothing is read and nothing is written.
//
// The configuration in config does not have the webhook yet, because the list of the package webhooks does not.
package podprobemarker
