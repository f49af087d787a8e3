package podprobe

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

// prober runs the probes of a schedule.
type prober struct {
	handlers handlers
	now      func() time.Time
	// report is called after a result that is new. It must not wait.
	report func()
	// wake has a value when there may be more to run.
	wake chan struct{}

	mu       sync.Mutex
	schedule *schedule
}

func newProber(r Runtime, now func() time.Time, report func()) *prober {
	return &prober{
		handlers: newHandlers(r), now: now, report: report, wake: make(chan struct{}, 1), schedule: newSchedule(now()),
	}
}

func (p *prober) rouse() {
	select {
	case p.wake <- struct{}{}:
	default: // it has one
	}
}

// sync makes the probes those of a spec, and returns their findings.
func (p *prober) sync(n *v1alpha1.NodePodProbe) map[podprobe.Key]podprobe.Memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule.sync(n, p.now())
	p.rouse()
	return p.schedule.findings()
}

// work runs probes until the context ends, and returns when the last has ended.
func (p *prober) work(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		pause := p.start(ctx, &running)
		timer := time.NewTimer(pause)
		select {
		case <-p.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// longPause is how long nothing happens where no probe is due.
const longPause = time.Hour

// start starts all runs that may begin, and returns when the next may.
func (p *prober) start(ctx context.Context, running *sync.WaitGroup) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		now := p.now()
		next, later := p.schedule.next(now)
		if next == nil {
			if later.IsZero() {
				return longPause
			}
			return max(later.Sub(now), time.Millisecond)
		}
		inner, cancel := context.WithCancel(ctx)
		r := p.schedule.begin(next, cancel)
		running.Add(1)
		go func() {
			defer running.Done()

			defer cancel()
			p.run(inner, r)
		}()
	}
}

// run runs a probe once.
func (p *prober) run(ctx context.Context, r *run) {
	err := p.probe(ctx, r)
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).V(1).Info("Probe has no result",
			"probe", r.asked.Name, "podUID", r.probe.uid, "reason", err.Error())
	}
	p.mu.Lock()
	fresh := p.schedule.end(r, p.now())
	p.mu.Unlock()
	p.rouse()
	if fresh {
		p.report()
	}
}

// probe looks at the container of a run, and finds out what is to be found. The memory of the run keeps it.
func (p *prober) probe(ctx context.Context, r *run) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", fault), "Recovered panic of a probe",
				"stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	found, err := p.handlers.runtime.Containers(ctx, cri.Query{PodUID: r.probe.uid, Name: r.asked.ContainerName})
	if err != nil {
		return fmt.Errorf("find container: %w", err)
	}
	if len(found) == 0 {
		return nil
	}
	c := found[0]
	var runs bool
	r.memory, runs = r.memory.Look(&r.asked, &podprobe.Container{
		ID: c.ID, Running: c.State == cri.Running, Ended: c.State == cri.Exited, StartedAt: c.StartedAt,
	}, p.now())
	if !runs {
		return nil
	}
	timeout := min(podprobe.Timeout(&r.asked), maxTimeout)
	result, err := p.handlers.run(ctx, &r.asked.Probe, target{container: c.ID, ip: r.ip, timeout: timeout})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err() // the caller no longer waits for the result
	}
	r.memory = r.memory.Judge(&r.asked, result, p.now())
	return nil
}
