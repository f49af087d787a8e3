// Package podscope keeps the entries of the pod webhook in a MutatingWebhookConfiguration of their own, so that API
// servers send the pods that a step of the webhook concerns. It plans the entries from the sources of internal/scope,
// and brings the live ones in line with them.
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
//   - A new selection is in force within a second: the writes of a configuration are half a second apart, and the first
//     comes at once.
//   - A namespace comes with its first object. It stays for Options.KeepRemoved after the last one is gone, so that it
//     costs two writes in that time whatever its objects do. A new leader keeps the namespaces
//     that it has seen objects in. A SidecarSet, which belongs to the cluster, is never kept.
//   - Entries are ours by their names. What is ours in an entry is repaired, with an event and a metric, where another
//     writer changes it: the rules, the client configuration, the match conditions, our requirements on the names of
//     namespaces. What others add to selectors, their policies and their timeouts stay, as do entries with other names.
//   - A configuration that is reset or deleted is written or created within a second. Pauses grow to a minute only
//     while another writer changes the entries again within half a minute. A change of what is wanted never waits for
//     such a pause.
//   - A new entry has the CA of the same service in the main configuration. Until there is one, nothing is written.
//   - Provisional entries (internal/scope) have a configuration of their own. They end seconds after they
//     were written, and not while planned entries wait to be written.
//   - A kind that is installed after the start is followed within seconds.
//
// Everything is read from caches. A configuration that does not exist is created, for which the manager needs a right
// that cannot be restricted by name; without it, create the configurations of config/webhook/pods.yaml.
//
// Of the pure half, plan.go orders the writes, entries.go compares entries, keep.go keeps namespaces, pace.go bounds
// writes, sweep.go ends provisional entries, and notes.go explains. metrics.go counts entries and writes.
//
// When not to use it: without the webhook of webhooks/pod, because API servers would get no answer.
package podscope
