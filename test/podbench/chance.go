package podbench

import (
	"errors"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Chance makes writes go wrong by chance. It needs no Bench.
type Chance struct {
	Seed uint64
	// Of this number of writes, one is not applied, one loses its answer, and one is rejected; 0 for no faults.
	Of int
	// Each means that the first three writes have one fault of each kind.
	Each bool

	mu    sync.Mutex
	all   int
	tried map[string]uint64
	made  map[string]int
}

// The kinds of faults.
const (
	NotMade    = "not made"
	AnswerLost = "made, and the answer is lost"
	Rejected   = "a policy rejects it"
)

// Do makes a write, or answers with a fault. It is made for Writes.
func (c *Chance) Do(what string, write func() error) error {
	switch fault := c.next(what); fault {
	case NotMade:
		return apierrors.NewInternalError(errors.New(fault))
	case AnswerLost:
		if err := write(); err != nil {
			return err
		}
		return apierrors.NewInternalError(errors.New(fault))
	case Rejected:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, what, errors.New(fault))
	}
	return write()
}

// next is the fault of a write; empty for none.
func (c *Chance) next(what string) string {
	if c.Of == 0 {
		return ""
	}
	kind := c.Draw(what, c.Of)
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := []string{NotMade, AnswerLost, Rejected}
	if c.all++; c.Each && c.all <= len(kinds) {
		kind = c.all - 1
	}
	if kind >= len(kinds) {
		return ""
	}
	if c.made == nil {
		c.made = map[string]int{}
	}
	c.made[kinds[kind]]++
	return kinds[kind]
}

// Made is how often each kind of fault was made.
func (c *Chance) Made() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.made)
}

// Draw returns a number below n. The number depends on the seed, on the write and on how often a number was drawn for
// the write, not on the order of concurrent writes.
func (c *Chance) Draw(what string, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tried == nil {
		c.tried = map[string]uint64{}
	}
	c.tried[what]++
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(what))
	return rand.New(rand.NewPCG(c.Seed^hash.Sum64(), c.tried[what])).IntN(n)
}
