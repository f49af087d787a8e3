// Package scale decides which instances of a workload to create, delete and update, and when the rest has to wait.
//
// An instance is what is scaled as one: a pod, or a group of pods that are created and deleted together. Plan takes all
// instances and the limits of the workload, and returns one plan: what to do now. The caller makes the writes of the
// plan, observes, and calls Plan again. No state is kept between two plans, so that a plan may be carried out in part.
//
//	result, err := scale.Plan(scale.Input{
//		Now:       now,
//		Instances: instances, // a pod each, whether it has the update revision, whether the user chose to delete it
//		Limits:    scale.Limits{Replicas: 10, Partition: 2, MaxUnavailable: 2},
//	})
//	if err != nil {
//		return err
//	}
//	// Create result.Create, delete result.Delete, update result.Update, and look again after result.RequeueAfter.
//	// result.Notes explain why each one is deleted, and what the others wait for.
//
// # Instances that are alike
//
// One is as good as another; they go by their number, and by revision. In this order, and only the first that applies:
// deletions that a hook holds are taken back where instances are missing; what is missing is created, at the old
// revision up to the partition; what hooks have released, what the user chose and what is too many is deleted; then
// instances are updated, up to the partition, or back to it.
//
// Victims are those that are missed least: on no node, not running, not available, not ready, cheap by their
// deletion cost, sharing a node or a topology domain with more others, ready for less time, restarted more often,
// newer. The note of each names which of these decided. Updates go in the same order, but for availability, cost and
// company, then by priority, scattered by label.
//
// # Groups
//
// An Instance with several pods and their Size is available when it is whole and all its pods are; it ranks as its
// weakest pod does, and costs as much as all of them together. Deletion and update mean all of it. The caller keeps it
// whole: Plan creates instances, no pods in them.
//
// # Slots
//
// With Input.Slots, instances have names of their own, as the ordinals of a StatefulSet or the nodes of a DaemonSet.
// Missing ones are created from the first to the last, those without a slot are deleted and those of an old revision
// updated from the last to the first, but for the first ones, which the partition keeps. With a Priority, even an
// empty one, any of them may be kept. InOrder makes it one step at a time, each when all slots before it are available.
// Only other deletions wait for an instance without a slot that its preDelete hook holds.
// There is no way back to the old revision; an old instance in a slot stays until it is updated.
//
// With Input.SurgeSlots, a rollout has up to MaxSurge more instances, at the update revision. Plan creates them while a
// slot is due: its instance is to be updated, or was chosen to be deleted. Each one that is available lets one more
// slot be unavailable, so that with a MaxUnavailable of 0 and a MaxSurge of 1 the slots go one at a time, each once the
// surge instance is available. Plan deletes them, the last first, when no slot is due and those that were updated are
// available; when updates stop, the limit is lowered, or the update revision changes; and never while fewer would be
// available than may be. An instance whose name becomes a slot is the one of that slot. One whose name becomes one for
// surge serves as that if it has the update revision. InOrder has no surge.
//
// A DaemonSet without surge on a node is Slots in the order of its nodes' names, an empty Priority, and
// UnavailableFirst. Its own are: surge on a node, a selector of the nodes to update, duplicates on a node, backoff of
// failed pods, and the revision of what it creates, which is always the new one. Unavailable instances of all slots
// count against the budget, those that the partition keeps included.
//
// # Limits
//
// Budget is the walk by which all plans keep to the number of instances that may be unavailable. It, Available, Differ,
// Prioritise and Scatter serve callers that make plans of their own; Amount, Partition and ResolveFenceposts resolve
// what the user wrote, and FailureTolerance is a limit for members that need a quorum.
//
// # Reading one's own writes
//
// Plan sees what the caller observed. A controller that plans from a cache which does not show its last writes yet
// creates instances twice, and spends the same budget twice. Package ledger remembers the writes of a controller, and
// reports whether the cache shows them; plan only then. Plan itself holds no state.
//
// A new pod with a readiness gate counts as available only once its gate is open; see package inplace for the gate
// InPlaceUpdateReady.
//
// Laws:
//   - The order of the instances does not matter; ties go by name. The input is not changed.
//   - Nothing is created beyond replicas and surge, or while more than may be are unavailable, which with slots are
//     those before the slot to fill. Nothing is deleted or updated so that fewer are available than may be, or fewer
//     old ones are left than the partition keeps. Where a bound is crossed already, no plan makes it worse. What is
//     exempt: a deletion that a hook has released, an instance whose name is in neither list of slots.
//   - With slots, MaxSurge bounds the instances next to them, and those in surge count as available ones. A missing
//     slot is filled all the same. No surge instance stays once the rollout is done, paused or limited to none, unless
//     it makes up for a slot that must be available.
//   - A plan creates or deletes or updates. Updates wait until there is nothing to create or delete, unless that is
//     limited to nothing. With NoCreate, slots that cannot be filled keep no instance from being deleted.
//   - A converged workload has an empty plan, but for the note of what the partition keeps. Every wait has a note, and
//     RequeueAfter is set where only time is missing.
//   - Every field of the input counts: a field that the mode ignores is an *InputError.
//   - Counts and bounds are integers: 14% of 50 is 7.
//
// When not to use it: for pods that are not replaced when they end, as those of a job, and where a built-in Deployment
// will do.
package scale
