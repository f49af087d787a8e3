package cri_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

func someEvents() []*criv1.ContainerEventResponse {
	var events []*criv1.ContainerEventResponse
	for i, kind := range []criv1.ContainerEventType{
		criv1.ContainerEventType_CONTAINER_CREATED_EVENT, criv1.ContainerEventType_CONTAINER_STARTED_EVENT,
		criv1.ContainerEventType_CONTAINER_STOPPED_EVENT, criv1.ContainerEventType_CONTAINER_DELETED_EVENT,
	} {
		events = append(events, &criv1.ContainerEventResponse{
			ContainerId: "c1", ContainerEventType: kind, CreatedAt: int64(i + 1),
			PodSandboxStatus: &criv1.PodSandboxStatus{Id: "s1", Metadata: &criv1.PodSandboxMetadata{Uid: "u"}},
		})
	}
	return events
}

func TestEvents(t *testing.T) {
	f := &fake{events: someEvents()}
	r, _ := start(t, f, cri.Options{})
	want := []cri.Event{
		{Kind: cri.ContainerCreated, ContainerID: "c1", At: time.Unix(0, 1)},
		{Kind: cri.ContainerStarted, ContainerID: "c1", At: time.Unix(0, 2)},
		{Kind: cri.ContainerStopped, ContainerID: "c1", At: time.Unix(0, 3)},
		{Kind: cri.ContainerDeleted, ContainerID: "c1", At: time.Unix(0, 4)},
	}
	for i := range want {
		want[i].Sandbox = cri.Sandbox{ID: "s1", PodUID: "u", Ready: true}
	}

	ctx, cancel := context.WithCancel(t.Context())
	var got []cri.Event
	for e, err := range r.Events(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e); len(got) == len(want) {
			cancel() // which ends the loop
		}
	}
	cancel()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	for e := range r.Events(t.Context()) {
		if e.Kind != cri.ContainerCreated {
			t.Errorf("a second listener begins with %v", e)
		}
		break
	}
}

func TestTheEndOfEvents(t *testing.T) {
	tests := map[string]struct {
		err  error
		want error
	}{
		"not made":                   {status.Error(codes.Unimplemented, "unknown method"), errors.ErrUnsupported},
		"the runtime ends":           {status.Error(codes.Unavailable, "x"), cri.ErrUnavailable},
		"the runtime has had enough": {errEnough, cri.ErrUnavailable},
	}
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			r, _ := start(t, &fake{events: someEvents(), eventsError: tt.err}, cri.Options{})
			var ends []error
			for _, err := range r.Events(t.Context()) {
				if err != nil {
					ends = append(ends, err)
				}
			}
			if len(ends) != 1 {
				t.Fatalf("ended with %v, want one error", ends)
			}
			wantError(t, ends[0], tt.want)
		})
	}
}

func TestEventsWhenTheRuntimeRestarts(t *testing.T) {
	f := &fake{events: someEvents()}
	r, path := start(t, f, cri.Options{CallTimeout: 100 * time.Millisecond})
	var end error
	seen := 0
	for _, err := range r.Events(t.Context()) {
		if end = err; err != nil {
			continue
		}
		if seen++; seen == len(f.events) {
			f.stop(path)
		}
	}
	wantError(t, end, cri.ErrUnavailable)
	for _, err := range r.Events(t.Context()) {
		wantError(t, err, cri.ErrUnavailable)
	}
}
