package imagepull

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/imagepull"
)

const (
	// spaceEvery is how often the disk is measured while pulls run, and how long a measurement holds.
	spaceEvery = 2 * time.Second
	// noRoomEvery is the least pause between two events about pulls that wait for room.
	noRoomEvery = 10 * time.Minute
)

// noRoomError ends an attempt because the disk is full up to the bound.
type noRoomError struct {
	text string
	// stopped says that the attempt was pulling.
	stopped bool
}

func (e *noRoomError) Error() string { return e.text }

// space watches the file systems of images for a bound.
type space struct {
	images Images
	least  int
	now    func() time.Time

	mu   sync.Mutex
	at   time.Time
	last imagepull.Headroom
	err  error
	// logged is the reason of the last line about a disk that is not visible.
	logged string
}

func newSpace(images Images, o Options) *space {
	return &space{images: images, least: o.MinFreePercent, now: o.Now}
}

// look returns the room for pulls. Where it is not known there is no bound, which it logs once.
func (s *space) look(ctx context.Context) imagepull.Headroom {
	if s.least == 0 {
		return imagepull.Headroom{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.measure()
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if reason != s.logged && reason != "" {
		log.FromContext(ctx).Info("Pulls have no bound of disk space", "reason", reason)
	}
	s.logged = reason
	return h
}

// measure is called with the lock.
func (s *space) measure() (imagepull.Headroom, error) {
	now := s.now()
	if age := now.Sub(s.at); s.at.IsZero() || age < 0 || age >= spaceEvery {
		s.last, s.err = s.fresh()
		s.at = now
	}
	return s.last, s.err
}

func (s *space) fresh() (h imagepull.Headroom, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			h, err = imagepull.Headroom{}, fmt.Errorf("measure image file system: panic: %v", fault)
		}
	}()
	found, err := s.images.ImageSpace()
	if err == nil && len(found) == 0 {
		err = errors.New("measure image file system: there is none")
	}
	if err != nil {
		return imagepull.Headroom{}, err
	}
	spaces := make([]imagepull.Space, 0, len(found))
	for _, f := range found {
		spaces = append(spaces, imagepull.Space(f))
	}
	return imagepull.Measure(s.least, spaces...), nil
}

// free is the share of the disk that is free, for a metric.
func (s *space) free() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, err := s.measure(); err == nil {
		return float64(h.FreePercent) / 100
	}
	return math.NaN()
}

// bound is the share that pulls leave free, for a metric.
func (s *space) bound() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.measure(); err == nil {
		return float64(s.least) / 100
	}
	return 0
}

// guard cancels a pull, with a noRoomError, when the disk is full up to the bound. It ends with the context.
func (s *space) guard(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(spaceEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if text := s.look(ctx).Shortage; text != "" {
				cancel(&noRoomError{text: text, stopped: true})
				return
			}
		}
	}
}

// pullWithin pulls where there is room, and as long as there is.
func (r *Reconciler) pullWithin(ctx context.Context, a *attempt) (string, error) {
	if text := r.space.look(ctx).Shortage; text != "" {
		return "", &noRoomError{text: text}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if r.options.MinFreePercent > 0 {
		go r.space.guard(ctx, cancel)
	}
	id, err := r.pull(ctx, a)
	if short := noRoom(context.Cause(ctx)); err != nil && short != nil {
		return "", fmt.Errorf("pull image %q: stopped: %w", a.pull.Reference.String(), short)
	}
	return id, err
}

// noRoom returns the shortage that an error is about, or nil.
func noRoom(err error) *noRoomError {
	short := (*noRoomError)(nil)
	errors.As(err, &short)
	return short
}
