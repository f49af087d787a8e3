// Package podscope keeps the entries of the pod webhook in a MutatingWebhookConfiguration of their own, so that API servers send
// the pods that SidecarSets and the other steps concern, and no others. What the entries say is computed by internal/scope.
//
//	r, err := podscope.New(mgr.GetClient(), podscope.Options{})
//	if err != nil {
//		return err
//	}
//	return r.SetupWithManager(ctx, mgr, controller.Options{})
//
// The configuration is part of the deployment, without entries; nothing happens where it is missing.
//
// Laws:
//   - An entry is written when what it should say has changed since it was written last, which an annotation records, and when
//     it has gone; not when somebody else has changed it. So what others add to selectors, and their policies and timeouts,
//     stay, and a change of the sets brings only the match conditions of ours up to date.
//   - Entries with other names than ours are not touched.
//   - Where others undo what was written, it is written again after pauses that double up to minutes, and an event says so.
//     What sets want anew is written at once all the same.
//   - An entry has a CA from its first moment: that of the same service in the main configuration. Until there is one,
//     nothing is written.
//   - A write tests that the configuration is the one that was looked at. What changes within moments is written together.
//   - An entry that was written ahead of a set (internal/scope/ahead) stays until the regular ones have had that state of the set for
//     a second, or for a minute where the set does not come. Taking it away is at most one write more for each.
//
// When not to use it: without the webhook of webhooks/pod, for API servers would call nobody.
package podscope
