package workloadspread

// Kept counts the WorkloadSpreads that take memory.
func (d *Allocator) Kept() int { return d.records.Kept() }
