package subset

// ByOrdinal returns the subset of a pod of a StatefulSet by its ordinal: the first subset has the first ordinals, up to
// its limit. A pod whose subset is not schedulable gets the next schedulable subset without a limit. Nil where there is
// none.
func ByOrdinal(ws *Spread, ordinal int32) *Subset {
	totals := byName(ws.Status.SubsetStatuses)
	limits, _ := Limits(ws.Spec.Subsets, Base{Unknown: true})
	home := homeOf(limits, ordinal)
	for i := home; i < len(limits); i++ {
		if s := &ws.Spec.Subsets[i]; (i == home || limits[i] == Unlimited) && Schedulable(totals[s.Name]) {
			return s
		}
	}
	return nil
}

// homeOf returns the index of the subset that an ordinal belongs to; len(limits) for none.
func homeOf(limits []int32, ordinal int32) int {
	end := int64(0)
	for i, limit := range limits {
		switch limit {
		case Unlimited:
			return i
		case Unresolved:
			continue
		}
		if end += int64(limit); int64(ordinal) < end {
			return i
		}
	}
	return len(limits)
}
