package cri

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// EventKind says what has happened to a container.
type EventKind string

// The kinds that CRI knows.
const (
	ContainerCreated EventKind = "Created"
	ContainerStarted EventKind = "Started"
	ContainerStopped EventKind = "Stopped"
	ContainerDeleted EventKind = "Deleted"
)

// Event is something that has happened to a container or, with the ID of one, to a sandbox.
type Event struct {
	Kind        EventKind
	ContainerID string
	At          time.Time
	// Sandbox is the pod's. It may be zero after the pod's end.
	Sandbox Sandbox
}

// Events gives what happens from now on, until the context ends or the loop is left; then it ends without an error. Any
// other end is an error, the last that is given: ErrUnavailable when the runtime went away, errors.ErrUnsupported when
// it has no events, as CRI-O by default. Then poll.
//
// Events only save time. Nothing says from when on they flow, and one may be lost: so list after calling, and once in
// a while. containerd 1.7 gives each event to one listener alone; where a kubelet listens there (its feature gate
// EventedPLEG), do not.
func (r *Runtime) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		listening := operation{verb: "listen to containers"}
		if err := r.await(ctx, listening); err != nil {
			if ctx.Err() == nil {
				yield(Event{}, err)
			}
			return
		}
		inner, release := within(ctx, 0)
		defer release()
		stream, err := r.runtime.GetContainerEvents(inner, &criv1.GetEventsRequest{})
		for err == nil {
			var got *criv1.ContainerEventResponse
			if got, err = stream.Recv(); err == nil && !yield(eventOf(got), nil) {
				return
			}
		}
		if ctx.Err() == nil {
			yield(Event{}, listening.interrupted(inner, stream, err))
		}
	}
}

// interrupted says why a stream has ended.
func (o operation) interrupted(inner context.Context, stream grpc.ClientStream, err error) error {
	if errors.Is(err, io.EOF) {
		return &failure{what: o.String(), is: ErrUnavailable, text: "the runtime has ended it"}
	}
	return o.explain(inner, answer{err: err, sent: stream != nil && stream.Trailer().Len() > 0})
}

func eventOf(e *criv1.ContainerEventResponse) Event {
	event := Event{
		ContainerID: e.GetContainerId(), At: timeOf(e.GetCreatedAt()), Sandbox: sandboxOf(e.GetPodSandboxStatus()),
	}
	switch e.GetContainerEventType() {
	case criv1.ContainerEventType_CONTAINER_CREATED_EVENT:
		event.Kind = ContainerCreated
	case criv1.ContainerEventType_CONTAINER_STARTED_EVENT:
		event.Kind = ContainerStarted
	case criv1.ContainerEventType_CONTAINER_STOPPED_EVENT:
		event.Kind = ContainerStopped
	case criv1.ContainerEventType_CONTAINER_DELETED_EVENT:
		event.Kind = ContainerDeleted
	}
	return event
}
