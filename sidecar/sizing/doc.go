// Package sizing gives an injected container the cpu and memory that the resourcesPolicy of its SidecarSet asks for: a
// formula over the limits, and one over the requests, of the pod's own containers.
//
// A policy is parsed once, and computed for each pod that is created:
//
//	policy, err := sizing.Parse(container.ResourcesPolicy)
//	if err != nil {
//		return err // an *sizing.InvalidError: which fields, and why
//	}
//	targets := policy.Targets(pod, declared) // declared: names of the containers of all sets that match the pod
//	sized, err := policy.Compute(targets)
//	if err != nil {
//		return err // errors.Is(err, sizing.ErrNoTarget), or a formula that fails for these values
//	}
//	injected.Resources = sized.Resources // all of it; sized.Notes say what was left out, and why
//
// Check is for whoever admits the set: it finds all that is wrong, and not only what one pod would run into. A formula
// that is broken does no harm as long as it is not needed, as that of a limit that there is none of.
//
// What the formulas may say is the chapter of package expression. The variable cpu of limits.cpu is the cpu limits of
// all targets, added or the largest of them; that of requests.cpu is their cpu requests, and so on. No other variable
// has a value.
//
// Laws:
//   - Where one target has no limit, the targets together are unlimited: then there is no such limit in the result, even
//     if the formula is a constant. A request that is missing counts as 0.
//   - Without a formula a limit or request is left out. A result of 0 is written.
//   - The order of the targets decides only in which of their units a result is written.
//   - Nothing that is given is changed, and nothing of it is in the result.
//
// When not to use it: for pods that have resources of their own, and for a container that is resized while it runs.
package sizing
