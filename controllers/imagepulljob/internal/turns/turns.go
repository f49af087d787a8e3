// Package turns lets one goroutine at a time work on an object, so that the writers of a process cause no conflicts.
//
//	defer t.Take(node + " " + image)()
//
// When not to use it: for writes that test only what they change.
package turns

import "hash/fnv"

// Turns are those of all objects. Objects share a fixed number of turns: at times, one waits for another.
type Turns [64]chan struct{}

// New returns Turns of which none is taken.
func New() *Turns {
	t := &Turns{}
	for i := range t {
		t[i] = make(chan struct{}, 1)
	}
	return t
}

// Take waits for the turn of an object, and returns what ends it. A goroutine takes one at a time.
func (t *Turns) Take(object string) (end func()) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(object))
	turn := t[h.Sum32()%uint32(len(t))]
	turn <- struct{}{}
	return func() { <-turn }
}
