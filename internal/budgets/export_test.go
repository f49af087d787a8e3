package budgets

// Waiting counts the questions that wait in all lines.
func (g *Guard) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, l := range g.lines {
		n += len(l.waiting)
	}
	return n
}

// Kept counts the budgets of which something is kept.
func (g *Guard) Kept() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lines)
}
