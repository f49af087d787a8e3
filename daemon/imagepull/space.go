package imagepull

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/driver"
)

// spaceEvery is how often the disk is measured while pulls run, and how long a measurement holds.
const spaceEvery = 2 * time.Second

// errNoRoom ends an attempt because the disk is full up to the bound.
var errNoRoom = errors.New("no room for pulls")

// space watches the file systems of images for a bound.
type space struct {
	images Images
	least  int
	now    func() time.Time

	mu sync.Mutex
	at time.Time
	// percent is the free share of what is the scarcest. It is not known where err is not nil.
	percent int
	scarce  string
	err     error
	// logged is the reason of the last line about a disk that is not visible.
	logged string
}

// check returns an errNoRoom where pulls have no room. Where the room is not known there is no bound, which check logs
// once.
func (s *space) check(ctx context.Context) error {
	if s.least == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure()
	reason := ""
	if s.err != nil {
		reason = s.err.Error()
	}
	if reason != s.logged && reason != "" {
		log.FromContext(ctx).Info("Pulls have no bound of disk space", "reason", reason)
	}
	s.logged = reason
	if s.err != nil || s.percent >= s.least {
		return nil
	}
	return fmt.Errorf("%w: less than %d%% of the %s is free", errNoRoom, s.least, s.scarce)
}

// measure is called with the lock.
func (s *space) measure() {
	now := s.now()
	if age := now.Sub(s.at); !s.at.IsZero() && age >= 0 && age < spaceEvery {
		return
	}
	var found []cri.Space
	s.at, s.percent = now, 100
	s.err = driver.Recovered(func() (err error) {
		found, err = s.images.ImageSpace()
		return err
	})
	if s.err == nil && len(found) == 0 {
		s.err = errors.New("measure image file system: there is none")
	}
	for _, f := range found {
		if free := percent(f.Available, f.Capacity); free < s.percent {
			s.percent, s.scarce = free, "image file system"
		}
		if free := percent(f.FreeInodes, f.Inodes); free < s.percent {
			s.percent, s.scarce = free, "inodes of the image file system"
		}
	}
}

// percent returns a share of a whole in percent. All of a whole that is not known is free.
func percent(part, whole uint64) int {
	if part >= whole {
		return 100
	}
	return int(part / max(whole/100, 1))
}

// free is the share of the disk that is free, for a metric.
func (s *space) free() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.measure(); s.err != nil {
		return math.NaN()
	}
	return float64(s.percent) / 100
}

// bound is the share that pulls leave free, for a metric.
func (s *space) bound() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.measure(); s.err != nil {
		return 0
	}
	return float64(s.least) / 100
}

// guard cancels a pull when the disk is full up to the bound. It ends with the context.
func (s *space) guard(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(spaceEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			if err := s.check(ctx); err != nil {
				cancel(err)
			}
		}
	}
}

// pullWithin pulls where there is room, and as long as there is.
func (r *Reconciler) pullWithin(ctx context.Context, a *attempt) (string, error) {
	if err := r.space.check(ctx); err != nil {
		return "", fmt.Errorf("pull image %q: %w", a.pull.Reference.String(), err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if r.options.MinFreePercent > 0 {
		go r.space.guard(ctx, cancel)
	}
	id, err := r.pull(ctx, a)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errNoRoom) {
		return "", fmt.Errorf("pull image %q: stopped: %w", a.pull.Reference.String(), cause)
	}
	return id, err
}
