// Package expression computes the cpu or memory of a container by a formula over that of others, as the resourcesPolicy
// of a SidecarSet does: half of what the application has, but at least so much.
//
// A text is parsed once, and evaluated for each pod:
//
//	e, err := expression.Parse("max(cpu*50%, 50m)", expression.Options{})
//	if err != nil {
//		return err // an *expression.Error: at which byte, what was expected, what was found
//	}
//	if err = e.Check(corev1.ResourceCPU); err != nil {
//		return err // for admission: the formula uses memory, or is always negative
//	}
//	limit, err := e.Evaluate(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("600m")}) // 300m
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
//   - A quantity times a quantity, and anything divided by a quantity, is an error of Parse. A max or min with a
//     quantity is a quantity, whichever it returns.
//   - A literal finer than a thousandth counts as the next one, as everywhere in Kubernetes.
//   - A result is written as its operands are, in Mi or in M: the first of a sum that is not 0, the one that max
//     or min takes, on a tie the first. A number is written as what it meets, and else in decimals.
//
// A number with a missing exponent or an unknown unit, such as 1e or 100Mx, counts as 0, because stored objects rely on
// that. Options.Strict returns an error, so that admission can warn.
//
// # Laws
//
//   - What Parse accepts fails only by the values: one is missing, a sum or product does not fit, the result is
//     negative. All divisors are numbers, so that a division by 0 is found by Parse; so is a negative result that no
//     variable can change.
//   - Given a value for each of Uses, nothing is undefined. What is beyond 2^63 thousandths, about 8Pi, on the way or
//     in the end, is an error, not a wrong quantity. On the way, a quantity may be negative.
//   - The same expression and values give the same quantity on every machine: no floating point is involved. 57% of
//     100m is 57m.
//   - No text makes Parse panic or run long: at most 4096 bytes, 100 levels of nesting, and fractions of 512 bits.
//
// When not to use it: for a percentage of a number of pods, which is package scale's Amount; and for formulas with
// conditions, strings or names of your own, which CEL is for.
package expression
