package cri_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// quick is what is promised of reconnecting.
const quick = 2*time.Second + 500*time.Millisecond // a little for a busy machine

func TestTheConnectionComesBackWithoutACall(t *testing.T) {
	first := &fake{}
	r, path := start(t, first, cri.Options{})
	awaitConnection(t, r, isUp)
	for range 3 {
		first.stop(path)
		awaitConnection(t, r, isDown)
		if err := first.serve(path); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		awaitConnection(t, r, isUp)
		if took := time.Since(begin); took > quick {
			t.Errorf("took %s to connect again", took)
		}
		if err := ping(t.Context(), r); err != nil {
			t.Errorf("after reconnecting: %v", err)
		}
	}
}

func TestAfterALongOutage(t *testing.T) {
	f := &fake{}
	r, path := start(t, f, cri.Options{CallTimeout: 3 * time.Second})
	f.stop(path)
	// Meanwhile the pauses between attempts grow.
	wantError(t, ping(t.Context(), r), cri.ErrUnavailable)
	if err := f.serve(path); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	awaitConnection(t, r, isUp)
	if took := time.Since(begin); took > quick {
		t.Errorf("took %s to connect again", took)
	}
}

func TestACallWaitsForTheRuntimesReturn(t *testing.T) {
	f := &fake{
		containers: []*criv1.ContainerStatus{container("c1", "p", "a", 1)},
		sandboxes:  map[string]*criv1.PodSandboxStatus{"s1": {Id: "s1"}},
		images:     []*criv1.Image{{Id: "i"}},
		exec: func(context.Context, *criv1.ExecSyncRequest) (*criv1.ExecSyncResponse, error) {
			return &criv1.ExecSyncResponse{}, nil
		},
		registry: func(context.Context, *criv1.PullImageRequest) (string, error) { return "", nil },
	}
	r, path := start(t, f, cri.Options{CallTimeout: eventually})
	f.stop(path)
	awaitConnection(t, r, isDown)
	type result struct {
		method string
		err    error
	}
	results := make(chan result)
	all := calls()
	for method, do := range all {
		go func() { results <- result{method, do(t.Context(), r)} }()
	}
	if err := f.serve(path); err != nil {
		t.Fatal(err)
	}
	for range all {
		if got := <-results; got.err != nil {
			t.Errorf("%s: %v", got.method, got.err)
		}
	}
}

func TestACallThatWaitsEndsWithItsContext(t *testing.T) {
	f := &fake{}
	r, path := start(t, f, cri.Options{CallTimeout: time.Hour})
	f.stop(path)
	awaitConnection(t, r, isDown)
	for method, do := range calls() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := do(ctx, r)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestACallThatIsUnderWayFails(t *testing.T) {
	for method, do := range calls() {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := &fake{containers: []*criv1.ContainerStatus{container("c1", "p", "a", 1)}}
			r, path := start(t, f, cri.Options{CallTimeout: eventually})
			before, begun, _ := hang(method)
			f.before = before
			failed := make(chan error, 1)
			go func() { failed <- do(t.Context(), r) }()
			await(t, "the call has begun", begun)
			f.stop(path)
			wantError(t, <-failed, cri.ErrUnavailable)
			f.before = nil
			if err := f.serve(path); err != nil {
				t.Fatal(err)
			}
			if err := ping(t.Context(), r); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

func TestCloseEndsCalls(t *testing.T) {
	f := &fake{}
	path := socketPath(t)
	if err := f.serve(path); err != nil {
		t.Fatal(err)
	}
	defer f.stop(path)
	r, err := cri.Open(t.Context(), path, cri.Options{CallTimeout: eventually})
	if err != nil {
		t.Fatal(err)
	}
	before, begun, _ := hang("PullImage")
	f.before = before
	failed := make(chan error, 1)
	go func() { failed <- calls()["PullImage"](t.Context(), r) }()
	await(t, "the pull has begun", begun)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	wantError(t, <-failed, cri.ErrUnavailable)
	wantError(t, ping(t.Context(), r), cri.ErrUnavailable)
	awaitConnection(t, r, isDown)
}

func TestOpenFails(t *testing.T) {
	silent := socketPath(t)
	listener, err := net.Listen("unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	gone := socketPath(t)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: gone, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()

	tests := map[string]struct {
		endpoint string
		options  cri.Options
		want     error
	}{
		"nothing there":                     {socketPath(t), cri.Options{}, cri.ErrUnavailable},
		"nobody listens any more":           {gone, cri.Options{}, cri.ErrUnavailable},
		"somebody listens and says nothing": {silent, cri.Options{OpenTimeout: 100 * time.Millisecond}, cri.ErrUnavailable},
		"not a path":                        {"run/containerd.sock", cri.Options{}, nil},
		"a relative path":                   {"unix://run/containerd.sock", cri.Options{}, nil},
		"the network":                       {"tcp://127.0.0.1:1", cri.Options{}, nil},
		"nothing":                           {"", cri.Options{}, nil},
		"a negative timeout":                {gone, cri.Options{CallTimeout: -1}, nil},
	}
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			begin := time.Now()
			_, err := cri.Open(t.Context(), tt.endpoint, tt.options)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Open = %v, want %v", err, tt.want)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("took %s, although there is nothing to wait for", took)
			}
		})
	}
}
