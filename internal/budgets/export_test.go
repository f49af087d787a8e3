package budgets

// Waiting counts the reviews that wait for the write of another batch.
func (g *Guard) Waiting() int { return g.reviews.Waiting() }

// Kept counts the budgets that take memory.
func (g *Guard) Kept() int { return g.reviews.Kept() }
