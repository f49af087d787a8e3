package serving

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// Parts of all requests and of the memory that reviews of one namespace from one client may have while they run, and
// reviews without a namespace of one path. Twice as many may wait, with as much memory. A controller creates the pods
// of a namespace in bursts, all from one API server: they wait, and are not refused.
const (
	partOfNamespace = 16
	partOfPath      = 8
	moreWait        = 2
)

// tenant is what reviews are counted by. A client that makes up reviews can name any namespace, so it is counted beside
// the client.
type tenant struct {
	client netip.Addr
	// namespace of the objects; where there is none, the path is.
	namespace, path string
}

// part of requests and memory.
func (t tenant) part() int {
	if t.namespace != "" {
		return partOfNamespace
	}
	return partOfPath
}

// String names the tenant to users.
func (t tenant) String() string {
	if t.namespace != "" {
		return "of the namespace " + t.namespace
	}
	return "for " + t.path
}

// queue is what the reviews of a tenant hold, and in which order they wait.
type queue struct {
	tenant           tenant
	members, running int
	// memory of all, and used that of those that run.
	memory, used int64
	waiting      []*waiter
}

// waiter is a review that is in memory, and waits for others of its tenant.
type waiter struct {
	share *share
	need  int64
	// answer is whether there was memory in the end.
	answer chan bool
}

// mayRun reports whether one more review of a size may run. Where none runs, the first one may, however large it is.
func (s *shares) mayRun(q *queue, size int64) bool {
	return q.running == 0 || q.running < s.requestsOf(q) && q.used+size <= s.memoryOf(q)
}

// requestsOf and memoryOf are the limits of a queue.
func (s *shares) requestsOf(q *queue) int { return max(1, s.most.Requests/q.tenant.part()) }

func (s *shares) memoryOf(q *queue) int64 { return s.most.Memory / int64(q.tenant.part()) }

// waitingOf is the memory of bodies that have arrived, and wait.
func (s *shares) waitingOf(q *queue) int64 { return s.memoryOf(q) }

// join counts a request in the queue of its tenant.
func (s *share) join(t tenant) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	q := s.of.tenants[t]
	if q == nil {
		q = &queue{tenant: t}
		s.of.tenants[t] = q
	}
	q.members++
	q.memory += s.held.memory
	s.queue = q
}

// leave is the opposite. The caller holds the lock.
func (s *share) leave() {
	q := s.queue
	if q == nil {
		return
	}
	q.members--
	q.memory -= s.held.memory
	if s.running {
		q.running--
		q.used -= s.held.memory
	}
	if q.members == 0 {
		delete(s.of.tenants, q.tenant)
	}
	s.of.advance(q)
}

// reserve adds memory for a body that arrives. It does not wait: the part of the body that is not read would hold up
// what comes behind it on the same connection. A body that is small enough for each that may run is read, and can wait.
func (s *share) reserve(n int64) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if q := s.queue; q != nil {
		alone := q.memory == s.held.memory
		small := s.held.memory+n <= s.of.memoryOf(q)/int64(s.of.requestsOf(q))
		if !alone && !small && q.memory-q.used+n > s.of.waitingOf(q) {
			return tooMany(q.tenant)
		}
	}
	if !s.add(n) {
		return outOfMemory()
	}
	return nil
}

// run adds what decoding takes. Where its tenant has no room, the review waits for the others of the tenant, in the
// order of arrival.
func (s *share) run(ctx context.Context, need int64) error {
	if total := s.held.memory + need; total > s.of.largest() {
		const text = "the review takes %d bytes of memory, and must take at most %d: the object has too many elements"
		return &refusal{largeBody, http.StatusRequestEntityTooLarge, fmt.Sprintf(text, total, s.of.largest())}
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	q := s.queue
	if len(q.waiting) == 0 && s.of.mayRun(q, s.held.memory+need) {
		return s.start(need)
	}
	if len(q.waiting) >= moreWait*s.of.requestsOf(q) {
		return tooMany(q.tenant)
	}
	w := &waiter{share: s, need: need, answer: make(chan bool, 1)}
	q.waiting = append(q.waiting, w)
	s.of.waiting++
	s.of.meter.show(s.of.all, s.of.waiting)
	return s.await(ctx, w)
}

// await waits without the lock, which the caller holds.
func (s *share) await(ctx context.Context, w *waiter) error {
	late := time.NewTimer(s.of.most.Wait)
	defer late.Stop()
	s.of.mu.Unlock()
	var started, answered bool
	select {
	case started = <-w.answer:
		answered = true
	case <-late.C:
	case <-ctx.Done():
	}
	s.of.mu.Lock()
	q := s.queue
	if at := slices.Index(q.waiting, w); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
		s.of.waiting--
		s.of.advance(q)
		return tooMany(q.tenant)
	}
	if !answered {
		started = <-w.answer // it came meanwhile
	}
	if !started {
		return outOfMemory()
	}
	return nil
}

// start begins to run. The caller holds the lock.
func (s *share) start(need int64) error {
	if !s.add(need) {
		return outOfMemory()
	}
	s.running = true
	s.queue.running++
	s.queue.used += s.held.memory
	return nil
}

// advance starts those that wait and have room. The caller holds the lock.
func (s *shares) advance(q *queue) {
	for len(q.waiting) > 0 && s.mayRun(q, q.waiting[0].share.held.memory+q.waiting[0].need) {
		w := q.waiting[0]
		q.waiting = q.waiting[1:]
		s.waiting--
		w.answer <- w.share.start(w.need) == nil
	}
}

func tooMany(t tenant) error {
	text := fmt.Sprintf("too many or too large reviews %s at the same time: try again", t)
	return &refusal{busyNamespace, http.StatusTooManyRequests, text}
}

func outOfMemory() error {
	return &refusal{busyMemory, http.StatusServiceUnavailable, "too much memory in requests at the same time"}
}
