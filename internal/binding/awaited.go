package binding

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// firstPause and longestPause are between two looks.
	firstPause, longestPause = time.Second, time.Minute
	// patientLooks is how many looks readiness, and parts with optional kinds, wait for: 15 seconds where no look finds
	// a kind.
	patientLooks = 4
)

// Part is what a manager runs only where kinds are installed.
type Part struct {
	Name string
	// Kinds must all be installed.
	Kinds []schema.GroupVersionKind
	// Optional are kinds without which the part does less. It waits for them for the first looks only.
	Optional []schema.GroupVersionKind
	// Add adds the part. Its context lives as long as the manager.
	Add func(ctx context.Context) error
}

// Missing returns the kinds of a part, also the optional ones, that are not installed.
func Missing(mapper meta.RESTMapper, p Part) ([]schema.GroupVersionKind, error) {
	var missing []schema.GroupVersionKind
	for _, kind := range slices.Concat(p.Kinds, p.Optional) {
		installed, err := Installed(mapper, kind)
		if err != nil {
			return nil, err
		}
		if !installed {
			missing = append(missing, kind)
		}
	}
	return missing, nil
}

// Awaited are parts that wait for their kinds. They are a runnable of a manager, on every replica. The zero value has
// none, and so has nil.
//
//	missing, err := binding.Missing(mapper, part)
//	...
//	var waiting binding.Awaited
//	err = waiting.AddTo(ctx, mgr, parts) // those with missing kinds
//	...
//	err = waiting.Check() // for readiness
//
// A look costs a request for each part that waits. The pause between looks grows from a second to a minute, and is a
// second again after a look that found a kind. A controller that joins late runs only on the leader, and its indexes
// cover the objects that the cache already has. A part that cannot be added ends the manager, as it does at the start:
// a half of a controller must not run.
type Awaited struct {
	mapper meta.RESTMapper
	clock  clock.WithTicker
	logger logr.Logger

	mu sync.Mutex
	// waiting have missing kinds, adding are added now.
	waiting, adding []Part
	looks           int
}

var errAdded = errors.New("a record of what waits for kinds serves one manager and one list")

// AddTo adds the runnable of parts that wait to a manager, once. Without parts it does nothing.
func (p *Awaited) AddTo(ctx context.Context, mgr ctrl.Manager, parts []Part) error {
	if len(parts) == 0 {
		return nil
	}
	if p == nil {
		p = &Awaited{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mapper != nil {
		return errAdded
	}
	p.mapper, p.clock, p.logger, p.waiting = mgr.GetRESTMapper(), clock.RealClock{}, log.FromContext(ctx), parts
	if err := mgr.Add(p); err != nil {
		return fmt.Errorf("add what waits for kinds: %w", err)
	}
	return nil
}

// NeedLeaderElection returns false: another leader must have all controllers.
func (*Awaited) NeedLeaderElection() bool { return false }

// Start looks for the kinds until all parts are added.
func (p *Awaited) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, p.logger)
	left, pause := len(p.Names()), firstPause
	added := make(chan error, left)
	next := p.clock.NewTimer(pause)
	defer next.Stop()
	for left > 0 {
		select {
		case <-ctx.Done():
			return nil
		case err := <-added:
			if err != nil {
				return err
			}
			left--
		case <-next.C():
			found := p.look(ctx)
			for _, part := range found {
				go func() { added <- p.add(ctx, part) }()
			}
			if pause = min(2*pause, longestPause); len(found) > 0 {
				pause = firstPause // others of the same install follow
			}
			next.Reset(pause)
		}
	}
	return nil
}

// look returns the parts that wait no longer.
func (p *Awaited) look(ctx context.Context) []Part {
	p.mu.Lock()
	waiting := p.waiting
	p.looks++
	patient := p.looks < patientLooks
	p.mu.Unlock()

	var found, still []Part
	for _, part := range waiting {
		if p.installed(ctx, part.Kinds) && (!patient || p.installed(ctx, part.Optional)) {
			found = append(found, part)
		} else {
			still = append(still, part)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting, p.adding = still, append(p.adding, found...)
	return found
}

// installed reports whether all kinds are installed.
func (p *Awaited) installed(ctx context.Context, kinds []schema.GroupVersionKind) bool {
	return !slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool {
		installed, err := Installed(p.mapper, kind)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to look up a kind", "kind", kind.String())
		}
		return !installed
	})
}

// add adds a part. It waits for the objects of its indexes, which can take as long as a list of them.
func (p *Awaited) add(ctx context.Context, part Part) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("add %s: panic: %v\n%s", part.Name, fault, debug.Stack())
		}
	}()
	if err := part.Add(ctx); err != nil {
		return fmt.Errorf("add %s: %w", part.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adding = slices.DeleteFunc(p.adding, func(other Part) bool { return other.Name == part.Name })
	return nil
}

// Names returns the parts that are not added, sorted.
func (p *Awaited) Names() []string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, part := range slices.Concat(p.waiting, p.adding) {
		all = append(all, part.Name)
	}
	slices.Sort(all)
	return all
}

// Check returns an error for the first looks while parts are not added. An administrator may leave kinds out for good,
// so that parts which wait longer are no error.
func (p *Awaited) Check() error {
	names := p.Names()
	if len(names) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looks >= patientLooks {
		return nil
	}
	return fmt.Errorf("wait for the kinds of %s: not installed", strings.Join(names, ", "))
}
