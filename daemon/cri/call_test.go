package cri_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// calls are all calls by their method, none of which has a time of its own but for the last three.
func calls() map[string]func(context.Context, *cri.Runtime) error {
	return map[string]func(context.Context, *cri.Runtime) error{
		"Version": func(ctx context.Context, r *cri.Runtime) error { _, err := r.Version(ctx); return err },
		"ListContainers": func(ctx context.Context, r *cri.Runtime) error {
			_, err := r.Containers(ctx, cri.Query{})
			return err
		},
		"ContainerStatus": func(ctx context.Context, r *cri.Runtime) error {
			_, err := find(ctx, r, "c1")
			return err
		},
		"PodSandboxStatus": func(ctx context.Context, r *cri.Runtime) error { _, err := r.Sandbox(ctx, "s1"); return err },
		"ListImages":       func(ctx context.Context, r *cri.Runtime) error { _, err := r.Images(ctx); return err },
		"ImageStatus":      func(ctx context.Context, r *cri.Runtime) error { _, err := r.Image(ctx, "i"); return err },
		"StopContainer":    func(ctx context.Context, r *cri.Runtime) error { return r.Stop(ctx, "c1", time.Second) },
		"ExecSync": func(ctx context.Context, r *cri.Runtime) error {
			_, err := r.Exec(ctx, "c1", cri.Command{Args: []string{"x"}, Timeout: time.Second})
			return err
		},
		"PullImage": func(ctx context.Context, r *cri.Runtime) error {
			_, err := r.Pull(ctx, "i", cri.Credentials{}, cri.SandboxConfig{})
			return err
		},
	}
}

func TestARuntimeThatHangsIsLeftInTime(t *testing.T) {
	const timeout = 300 * time.Millisecond
	for method, do := range calls() {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := &fake{containers: []*criv1.ContainerStatus{container("c1", "p", "a", 1)}}
			r, _ := start(t, f, cri.Options{CallTimeout: timeout, OpenTimeout: eventually})
			before, _, ended := hang(method)
			f.before = before
			least, most := timeout, eventually
			ctx := t.Context()
			switch method {
			case "StopContainer", "ExecSync":
				least += time.Second
			case "PullImage": // has no bound, so it gets one from outside
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 3*timeout)
				defer cancel()
				least = 3 * timeout
			}
			begin := time.Now()
			err := do(ctx, r)
			if took := time.Since(begin); took < least || took > most {
				t.Errorf("took %s, want at least %s", took, least)
			}
			if method == "PullImage" {
				wantError(t, err, context.DeadlineExceeded)
			} else {
				wantError(t, err, cri.ErrUnavailable)
			}
			await(t, "the call has ended at the runtime", ended)
		})
	}
}

func TestCancelReachesTheRuntime(t *testing.T) {
	for method, do := range calls() {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := &fake{containers: []*criv1.ContainerStatus{container("c1", "p", "a", 1)}}
			r, _ := start(t, f, cri.Options{CallTimeout: eventually})
			before, begun, ended := hang(method)
			f.before = before
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() { failed <- do(ctx, r) }()
			await(t, "the call has begun", begun)
			cancel()
			await(t, "the call has ended at the runtime", ended)
			err := <-failed
			wantError(t, err, context.Canceled)
			if errors.Is(err, cri.ErrUnavailable) {
				t.Errorf("%v blames the runtime", err)
			}
		})
	}
}

// A deadline that the runtime saw could come back as its own answer, which means something else for commands.
func TestTheRuntimeSeesNoDeadline(t *testing.T) {
	f := &fake{containers: []*criv1.ContainerStatus{container("c1", "p", "a", 1)}}
	r, _ := start(t, f, cri.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), eventually)
	defer cancel()
	f.exec = func(context.Context, *criv1.ExecSyncRequest) (*criv1.ExecSyncResponse, error) {
		return &criv1.ExecSyncResponse{}, nil
	}
	f.registry = func(context.Context, *criv1.PullImageRequest) (string, error) { return "", nil }
	f.before = func(ctx context.Context, method string) error {
		if _, ok := ctx.Deadline(); ok {
			t.Errorf("%s has a deadline", method)
		}
		return nil
	}
	for _, do := range calls() {
		_ = do(ctx, r)
	}
}

func TestContextValuesStay(t *testing.T) {
	f := &fake{}
	r, _ := start(t, f, cri.Options{})
	seen := make(chan []string, 1)
	f.before = func(ctx context.Context, _ string) error {
		md, _ := metadata.FromIncomingContext(ctx)
		seen <- md.Get("trace")
		return nil
	}
	if _, err := r.Version(metadata.AppendToOutgoingContext(t.Context(), "trace", "1")); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; len(got) != 1 || got[0] != "1" {
		t.Errorf("the runtime sees %q", got)
	}
}

func TestErrorsOfCalls(t *testing.T) {
	tests := map[string]struct {
		code codes.Code
		text string
		want error
	}{
		"not there":              {codes.NotFound, "x", cri.ErrNotFound},
		"not made":               {codes.Unimplemented, "unknown method", errors.ErrUnsupported},
		"about to end":           {codes.Unavailable, "x", cri.ErrUnavailable},
		"ends what it does":      {codes.Canceled, "context canceled", cri.ErrUnavailable},
		"has only just started":  {codes.Unknown, "server is not initialized yet", cri.ErrUnavailable},
		"anything else":          {codes.Internal, "x", nil},
		"a limit of its own":     {codes.DeadlineExceeded, "context deadline exceeded", nil},
		"a refusal of something": {codes.PermissionDenied, "x", nil},
	}
	f := &fake{}
	r, _ := start(t, f, cri.Options{})
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			f.before = func(context.Context, string) error { return status.Error(tt.code, tt.text) }
			err := r.Stop(t.Context(), "c1", 0)
			wantOnly(t, err, tt.want)
			if err == nil || !strings.Contains(err.Error(), `stop container "c1": `) ||
				!strings.HasSuffix(err.Error(), tt.text) {
				t.Errorf("error reads %v", err)
			}
		})
	}
}

func TestLargeLists(t *testing.T) {
	// More than the 4 MiB that gRPC takes by default, and less than the 16 that are promised.
	f := &fake{}
	for i := range 1000 {
		f.images = append(f.images, &criv1.Image{Id: fmt.Sprint(i), RepoTags: []string{strings.Repeat("x", 10<<10)}})
	}
	r, _ := start(t, f, cri.Options{})
	got, err := r.Images(t.Context())
	if err != nil || len(got) != 1000 {
		t.Errorf("Images = %d of them, %v", len(got), err)
	}
	f.images = append(f.images, &criv1.Image{Id: "one too large", Username: strings.Repeat("x", 16<<20)})
	if _, err := r.Images(t.Context()); err == nil || errors.Is(err, cri.ErrUnavailable) {
		t.Errorf("more than 16 MiB: %v, want an error that is not about the connection", err)
	}
}

// A command of a pod may write as much as it likes: what is kept is cut, and an answer that is much longer is never
// read.
func TestLargeOutputs(t *testing.T) {
	size := 0
	r, _ := start(t, &fake{exec: func(context.Context, *criv1.ExecSyncRequest) (*criv1.ExecSyncResponse, error) {
		return &criv1.ExecSyncResponse{Stdout: make([]byte, size)}, nil
	}}, cri.Options{})
	for why, test := range map[string]struct {
		most, size int
		fails      bool
	}{
		"what fits is cut":                          {0, 1 << 20, false},
		"much more is an error":                     {0, 2 << 20, true},
		"a caller who wants more may get more":      {2 << 20, 2 << 20, false},
		"and not more than that":                    {2 << 20, 4 << 20, true},
		"no one gets more than a message may carry": {64 << 20, 17 << 20, true},
	} {
		size = test.size
		got, err := r.Exec(t.Context(), "c1", cri.Command{Args: []string{"x"}, MaxOutput: test.most})
		if (err != nil) != test.fails || errors.Is(err, cri.ErrUnavailable) {
			t.Errorf("%s: %d bytes, %v", why, len(got.Stdout), err)
		}
	}
}
