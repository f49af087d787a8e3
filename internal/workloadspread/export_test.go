package spreads

// Kept counts the WorkloadSpreads of which something is kept.
func (d *Desk) Kept() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.kept)
}
