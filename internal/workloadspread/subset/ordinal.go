package subset

// ByOrdinal returns the subset of a pod of a StatefulSet by the rank of its ordinal: 0 for the first ordinal that the
// set wants. A pod whose subset is not schedulable gets the next schedulable subset without a limit. Nil where there is
// none.
func ByOrdinal(ws *Spread, limits []int32, rank int32) *Subset {
	totals := byName(ws.Status.SubsetStatuses)
	home := homeOf(limits, rank)
	for i := home; i < len(limits); i++ {
		if s := &ws.Spec.Subsets[i]; (i == home || limits[i] == Unlimited) && Schedulable(totals[s.Name]) {
			return s
		}
	}
	return nil
}

// Range returns the name of the subset that a rank belongs to, schedulable or not; empty for none.
func Range(ws *Spread, limits []int32, rank int32) string {
	if home := homeOf(limits, rank); home < len(limits) {
		return ws.Spec.Subsets[home].Name
	}
	return ""
}

// homeOf returns the index of the subset that a rank belongs to; len(limits) for none.
func homeOf(limits []int32, rank int32) int {
	end := int64(0)
	for i, limit := range limits {
		switch limit {
		case Unlimited:
			return i
		case Unresolved:
			continue
		}
		if end += int64(limit); int64(rank) < end {
			return i
		}
	}
	return len(limits)
}
