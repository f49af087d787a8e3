// Package podscope keeps the entries of the pod webhook in a MutatingWebhookConfiguration of their own, so that API
// servers send the pods that a step of the webhook concerns, and no others. It plans the entries from the sources of
// internal/scope, and brings the live ones in line with them as controllers/podscope/internal/entries decides.
//
//	r, err := podscope.New(mgr.GetClient(), podscope.Options{})
//	if err != nil {
//		return err
//	}
//	return r.SetupWithManager(ctx, mgr, controller.Options{})
//
// Laws:
//   - The leader alone writes, one configuration at a time, and tests the resource version that was read. Changes
//     within moments are written together.
//   - A new selection is in force within a second. One that is gone stays for Options.KeepRemoved, a minute by default,
//     rounded up to 10 seconds. A namespace that adds selections again and again has all of its pods sent until it is
//     calm: package steady has the laws. A SidecarSet, which belongs to the cluster, is never kept.
//   - What is ours in an entry is repaired, with an event and a metric, where another writer changes it: the rules, the
//     client configuration, our match conditions, our requirements on namespaces. What others add, their policies and
//     their timeouts stay, as do entries with other names.
//   - A configuration that is reset or deleted is written or created within a second. Pauses grow to a minute only
//     while another writer changes the entries again within half a minute.
//   - Pods that were created without their sets while entries were missing are reported, once, by an event of each set.
//   - A new entry has the CA of the same service in the main configuration. Until there is one, nothing is written.
//   - Provisional entries (internal/scope/provisional) have a configuration of their own, and end seconds after they
//     were written.
//   - A kind that is installed after the start is followed within seconds.
//
// Everything is read from caches. A configuration that does not exist is created, for which the manager needs a right
// that cannot be restricted by name; without it, create the configurations of config/webhook/pods.yaml.
//
// Beside the files that every reconciler has, metrics.go reports the size of the entries, and what they cost. There is
// no plan.go: package controllers/podscope/internal/entries plans.
//
// When not to use it: without the webhook of webhooks/pod, because API servers would get no answer.
package podscope
