package subset

// ByOrdinal returns the subset of a pod of a StatefulSet by the rank of its ordinal: 0 for the first ordinal that the set wants. A pod whose
// subset is not schedulable gets the next schedulable subset without a limit. Nil where there is none.
func ByOrdinal(ws *Spread, limits []int32, rank int32) *Subset {
	totals := byName(ws.Status.SubsetStatuses)
	end := int64(0)
	home := len(limits)
	for i, limit := range limits {
		switch limit {
		case Unlimited:
			home = i
		case Unresolved:
			continue
		default:
			if end += int64(limit); int64(rank) < end {
				home = i
			}
		}
		if home == i {
			break
		}
	}
	for i := home; i < len(limits); i++ {
		if s := &ws.Spec.Subsets[i]; (i == home || limits[i] == Unlimited) && Schedulable(totals[s.Name]) {
			return s
		}
	}
	return nil
}
