package stopping

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// The reasons of events.
const (
	reasonKilling    = "Killing"
	reasonFailedHook = "FailedPreStopHook"
)

const (
	// patience is for how long a runtime may be away, or say nothing.
	patience = 30 * time.Second
	// again is when it is asked again.
	again = time.Second
)

// kill carries out an order.
func (c *Workers[K]) kill(ctx context.Context, o Order) error {
	c.options.Event(o.Object, corev1.EventTypeNormal, reasonKilling, o.Kill.Text)
	began := c.options.Now()
	if o.Kill.Hook != nil && o.Kill.Grace > 0 {
		c.prepare(ctx, o)
	}
	var away time.Time
	for ctx.Err() == nil {
		err := o.Runtime.Stop(ctx, o.id(), o.Kill.StopWithin(c.options.Now().Sub(began)))
		now := c.options.Now()
		switch {
		case err == nil, errors.Is(err, cri.ErrNotFound):
			return nil
		case !errors.Is(err, cri.ErrUnavailable), !away.IsZero() && now.Sub(away) >= patience:
			return err
		case away.IsZero():
			// A runtime that restarts is no reason to fail, and stopping a container twice does no harm.
			away = now
		}
		pause(ctx, again)
	}
	return ctx.Err()
}

// prepare runs the hook, within the grace period. A hook that fails changes only events, metrics and logs: the stop
// continues.
func (c *Workers[K]) prepare(ctx context.Context, o Order) {
	within, cancel := context.WithTimeout(ctx, o.Kill.Grace)
	defer cancel()
	err := c.hooks.run(within, o)
	outcome := "done"
	switch {
	case err == nil:
	case ctx.Err() != nil: // given up
		return
	case within.Err() != nil:
		log.FromContext(ctx).Info("Hook was cut short by the end of the grace period",
			"pod", o.Object.Name, "container", o.Kill.Container)
		outcome = "cut"
	default:
		c.options.Event(o.Object, corev1.EventTypeWarning, reasonFailedHook, "PreStopHook failed: "+o.named(err.Error()))
		outcome = "failed"
	}
	c.metrics.hooks.WithLabelValues(kindOf(o.Kill.Hook), outcome).Inc()
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
