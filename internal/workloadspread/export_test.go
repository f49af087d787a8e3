package spreads

// Kept counts the WorkloadSpreads that take memory.
func (d *Desk) Kept() int { return d.records.Kept() }
