// Package podscope keeps the entries of the pod webhook in a MutatingWebhookConfiguration of their own, so that API servers send the pods
// that a step of the webhook concerns, and no others. It computes the entries from the sources of internal/scope.
//
//	r, err := podscope.New(mgr.GetClient(), podscope.Options{})
//	if err != nil {
//		return err
//	}
//	return r.SetupWithManager(ctx, mgr, controller.Options{})
//
// The configuration is part of the deployment, without entries. The reconciler does not create it.
//
// Laws:
//   - An entry is written when its content has changed since the last write, which an annotation records, and when it is missing; not when
//     another writer has changed it. What others add to selectors, and their policies and timeouts, stay, and a change of the sets updates
//     only our match conditions.
//   - Entries with other names are not changed.
//   - What another writer removes is written again after pauses that double up to minutes, with an event. A change of the sets is written
//     at once all the same.
//   - A new entry has the CA of the same service in the main configuration. Until there is one, nothing is written.
//   - A write tests the resource version that was read. Changes within moments are written together.
//   - A provisional entry (internal/scope/provisional) stays until the computed entries have had that state of the set for a second, or
//     for a minute where the set is not stored. Removing it costs at most one more write.
//
// When not to use it: without the webhook of webhooks/pod, because API servers would get no answer.
package podscope
