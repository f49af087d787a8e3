package serving

import (
	"bytes"
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// An estimate of what decoding a body takes at most. A body of empty containers, of three bytes each, becomes a list of
// structs of a kilobyte, which is copied once more. A body of objects of one field, of seven bytes each, becomes maps
// of 350 bytes, which are copied up to four times. An empty object in a field, of which managed fields have many, is a
// small map.
const (
	perByte   = 3
	perObject = 2 << 10
	perEmpty  = 256
	perValue  = 64
	// perRequest covers the goroutine, the header and the buffers of a request.
	perRequest = 32 << 10
)

// decoded estimates what a request with this body takes.
func decoded(body []byte) int64 {
	count := func(sign string) int64 { return int64(bytes.Count(body, []byte(sign))) }
	empty := count(`":{}`)
	return perRequest + perByte*int64(len(body)) +
		perObject*(count("{")-empty) + perEmpty*empty + perValue*(count("[")+count(","))
}

// memory bounds what requests take. Requests wait for work alone, and hold none while they wait: with a single
// semaphore, bodies that wait for memory could hold all of it.
type memory struct {
	bodies, work *semaphore.Weighted
	// largest is what one request may take.
	largest int64
	used    prometheus.Gauge
}

func newMemory(limit int64, used prometheus.Gauge) *memory {
	bodies := limit / 4
	work := limit - bodies
	return &memory{bodies: semaphore.NewWeighted(bodies), work: semaphore.NewWeighted(work), largest: work, used: used}
}

// share is what one request takes.
type share struct {
	of           *memory
	bodies, work int64
}

// grow adds memory for a body that arrives. It does not wait: the unread part of a body blocks the other requests of
// the connection.
func (s *share) grow(n int64) bool {
	if !s.of.bodies.TryAcquire(n) {
		return false
	}
	s.bodies += n
	s.of.used.Add(float64(n))
	return true
}

// run waits for memory to decode and answer, and gives the memory of the body back for it.
func (s *share) run(ctx context.Context, n int64) error {
	if err := s.of.work.Acquire(ctx, n); err != nil {
		return err //nolint:wrapcheck // the error of the context
	}
	s.of.used.Add(float64(n))
	s.release()
	s.work = n
	return nil
}

// release gives all memory back.
func (s *share) release() {
	s.of.used.Sub(float64(s.bodies + s.work))
	s.of.bodies.Release(s.bodies)
	s.of.work.Release(s.work)
	s.bodies, s.work = 0, 0
}
