package groupcommit

// Queues counts the objects that take memory.
func Queues[S, R any](c *Committer[S, R]) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queues)
}
