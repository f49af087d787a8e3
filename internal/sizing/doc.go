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
//	sized, err := policy.Size(targets)
//	if err != nil {
//		return err // errors.Is(err, sizing.ErrNoTarget), or a formula that fails for these values
//	}
//	injected.Resources = sized.Resources // all of it; sized.Notes say what was left out, and why
//
// Check is for admission: it returns every fault, not only those that one pod would meet. An invalid formula does no
// harm as long as it is not needed, as the formula of a limit for targets without limits.
//
// What the formulas may say is the chapter of package expression. The variable cpu of limits.cpu is the cpu limits of
// all targets, added or the largest of them; that of requests.cpu is their cpu requests, and so on. No other variable
// has a value.
//
// Laws:
//   - If one target has no limit, the targets together are unlimited: the result then has no such limit, even if the
//     formula is a constant. A missing request counts as 0.
//   - Without a formula a limit or request is left out. A result of 0 is written.
//   - The order of the targets decides only the unit of a result.
//   - The input is not changed, and the result shares nothing with it.
//
// When not to use it: for pods that have resources of their own, and for a container that is resized while it runs.
package sizing
