package scale

// Budget is a walk over candidates of a disruption, in the order in which they are to go, that lets no more instances
// be unavailable than may be. Each Take spends of it:
//
//	b := scale.Budget{Max: 2, Unavailable: unavailable}
//	for _, pod := range candidates {
//		if !b.Take(isAvailable(pod)) {
//			break // or continue, where one that is unavailable may go before its turn
//		}
//		disrupt(pod)
//	}
type Budget struct {
	// Max is how many instances may be unavailable at once. With zero or less nothing goes that is available.
	Max int32
	// Unavailable is how many are, the candidates among them included.
	Unavailable int32
	// Strict limits how many are under way, too: then an unavailable one needs a place as well. Without it a
	// workload that is all broken is replaced at once.
	Strict bool
	// UnderWay is how many are on their way already: disrupted before, and not available yet. Only Strict looks at it.
	UnderWay int32
}

// Take reports whether one more candidate may go, and counts it if it may. One that is unavailable already makes
// nothing worse, so it costs nothing.
func (b *Budget) Take(available bool) bool {
	if b.Strict && b.UnderWay >= b.Max {
		return false
	}
	if available {
		if b.Unavailable >= b.Max {
			return false
		}
		b.Unavailable++
	}
	b.UnderWay = saturatingAdd(b.UnderWay, 1)
	return true
}
