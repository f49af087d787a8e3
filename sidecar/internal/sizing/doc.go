// Package sizing gives an injected container the cpu and memory that the resourcesPolicy of its SidecarSet asks for: a
// formula over the limits, and one over the requests, of the pod's own containers.
//
// A policy is computed for each pod that is created:
//
//	policy, err := sizing.Parse(container.ResourcesPolicy)
//	if err != nil {
//		return err // which fields are invalid, and why
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
// The variable cpu of limits.cpu is the cpu limits of all targets, added or the largest of them; that of requests.cpu
// is their cpu requests, and so on. No other variable has a value.
//
// # The language
//
// Numbers are 3, 3.14, 1e3 and 50%, which is 0.5. Quantities are numbers with one of the units m k M G T P Ki Mi Gi Ti
// Pi, and the variables cpu and memory. Between them stand + - * / and parentheses, before them a minus, and around
// them max(a, b) and min(a, b). Names are case-insensitive, white space between the parts is ignored, and operators are
// left-associative, * and / before + and -.
//
// Numbers are exact fractions, quantities whole thousandths:
//
//   - Numbers alone make a number. A result that is one becomes a quantity.
//   - A quantity with a number is one, by * / + - max and min. The number is cut to thousandths for the last four of
//     these; a product or quotient is cut afterwards. Cut is towards 0.
//   - A quantity times a quantity, and anything divided by a quantity, is an error. A max or min with a quantity
//     is a quantity, also where it returns the number.
//   - A literal finer than a thousandth counts as the next one, as everywhere in Kubernetes.
//   - A result is written as its operands are, in Mi or in M: the first of a sum that is not 0, the one that max
//     or min takes, on a tie the first. A number is written as what it meets, and else in decimals.
//
// A number with a missing exponent or an unknown unit, such as 1e or 100Mx, counts as 0, because stored objects rely on
// that.
//
// # Laws
//
//   - What Check accepts fails only by the values: a sum or product does not fit, the result is negative. All divisors
//     are numbers, so that Check finds a division by 0, and a negative result that no variable can change.
//   - What is beyond 2^63 thousandths, about 8Pi, on the way or in the end, is an error, not a wrong quantity. On the
//     way, a quantity may be negative.
//   - The same expression and values give the same quantity on every machine: no floating point is involved. 57% of
//     100m is 57m.
//   - No text makes Evaluate panic or run long: at most 4096 bytes, 100 levels of nesting, and fractions of 512 bits.
//   - If one target has no limit, the targets together are unlimited: the result then has no such limit, even if the
//     formula is a constant. A missing request counts as 0.
//   - Without a formula a limit or request is left out. A result of 0 is written.
//   - The order of the targets decides only the unit of a result.
//   - The input is not changed, and the result shares nothing with it.
//
// When not to use it: for pods that have resources of their own, for a container that is resized while it runs, and for
// formulas with conditions, strings or names of your own, which CEL is for.
package sizing
