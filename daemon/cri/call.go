package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// An operation is a call as far as its end is concerned.
type operation struct {
	verb, object string
	// more is the time that the call itself takes, on top of the timeout of every call.
	more time.Duration
	// endless calls end with the caller's context alone.
	endless bool
	// registry says that it is the registry that may refuse, command that a command may run out of time.
	registry, command bool
}

func (o operation) String() string {
	if o.object == "" {
		return o.verb
	}
	return fmt.Sprintf("%s %q", o.verb, o.object)
}

// limit is the time that a call has, or zero.
func (o operation) limit(timeout time.Duration) time.Duration {
	if o.endless {
		return 0
	}
	return timeout + o.more
}

// errSilent is the cause of the end of a call that took too long.
var errSilent = errors.New("timeout")

// call waits until the runtime is there and calls it.
func call[A any](
	ctx context.Context, r *Runtime, o operation, rpc func(context.Context, ...grpc.CallOption) (A, error),
) (A, error) {
	var none A
	inner, release := within(ctx, o.limit(r.options.CallTimeout))
	defer release()
	if err := r.await(ctx, o); err != nil {
		return none, err
	}
	var trailer metadata.MD
	got, err := rpc(inner, grpc.Trailer(&trailer))
	if err != nil {
		return none, o.explain(inner, answer{err: err, sent: trailer.Len() > 0})
	}
	return got, nil
}

// await waits until the runtime is there. That is bounded also for calls that are endless.
func (r *Runtime) await(ctx context.Context, o operation) error {
	waiting, done := within(ctx, r.options.CallTimeout)
	defer done()
	if err := r.link.ready(waiting, false); err != nil {
		return o.unready(waiting, err)
	}
	return nil
}

// within ends a context after a time, if that is not zero, and with the given one. It has no deadline that a runtime
// could see: a runtime's answer would compete with our own end, and its meaning be in doubt.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, func() { cancel(ctx.Err()) })
	stop := func() bool { return false }
	if limit > 0 {
		stop = time.AfterFunc(limit, func() { cancel(errSilent) }).Stop
	}
	return inner, func() {
		unlink()
		stop()
		cancel(context.Canceled)
	}
}

// explain makes an error of what came back from a call in the given context.
func (o operation) explain(inner context.Context, a answer) error {
	// An answer that the runtime has sent holds, even if the call has ended since.
	if cause := context.Cause(inner); cause != nil && !a.sent {
		return o.ended(cause, "no answer in time")
	}
	return &failure{what: o.String(), is: o.judge(a), text: status.Convert(a.err).Message()}
}

// unready says why there was no call.
func (o operation) unready(inner context.Context, last error) error {
	if cause := context.Cause(inner); cause != nil {
		return o.ended(cause, last.Error())
	}
	return &failure{what: o.String(), is: ErrUnavailable, text: last.Error()}
}

func (o operation) ended(cause error, text string) error {
	if errors.Is(cause, errSilent) {
		return &failure{what: o.String(), is: ErrUnavailable, text: text}
	}
	// The caller knows why its context has ended.
	return &failure{what: o.String(), is: cause}
}
