package cri_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// eventually bounds what is to happen soon. It is long because the machine may be busy.
const eventually = 30 * time.Second

// socketPath is one that is short enough for a socket, whatever the test is called.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cri") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "runtime.sock")
}

// start serves a fake until the end of the test, and opens it. The context of Open is for opening alone.
func start(t *testing.T, f *fake, o cri.Options) (runtime *cri.Runtime, path string) {
	t.Helper()
	path = socketPath(t)
	if err := f.serve(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.stop(path) })
	ctx, cancel := context.WithCancel(t.Context())
	runtime, err := cri.Open(ctx, "unix://"+path, o)
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runtime.Close(); err != nil {
			t.Error(err)
		}
	})
	return runtime, path
}

// hang returns a hook that lets calls of a method wait for their end. It tells of the begin and the end of each.
func hang(method string) (before func(context.Context, string) error, begun, ended chan struct{}) {
	begun, ended = make(chan struct{}, 100), make(chan struct{}, 100)
	return func(ctx context.Context, called string) error {
		if !strings.HasSuffix(called, "/"+method) {
			return nil
		}
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return ctx.Err()
	}, begun, ended
}

func await(t *testing.T, what string, happens <-chan struct{}) {
	t.Helper()
	select {
	case <-happens:
	case <-time.After(eventually): //nolint:forbidigo // the bound of a failing test
		t.Fatalf("%s: has not happened", what)
	}
}

// awaitConnection waits until the connection is up or down.
func awaitConnection(t *testing.T, r *cri.Runtime, wanted bool) {
	t.Helper()
	limit := time.After(eventually) //nolint:forbidigo // the bound of a failing test
	for {
		up, changed := r.Connected()
		if up == wanted {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("connected: %t", up)
		}
	}
}

// The states of a connection.
const isUp, isDown = true, false

// ping is any call.
func ping(ctx context.Context, r *cri.Runtime) error {
	_, err := r.Version(ctx)
	return err
}

// find returns the container of an ID, or cri.ErrNotFound.
func find(ctx context.Context, r *cri.Runtime, id string) (cri.Container, error) {
	found, err := r.Containers(ctx, cri.Query{ID: id})
	if err != nil {
		return cri.Container{}, err
	}
	if len(found) != 1 {
		return cri.Container{}, cri.ErrNotFound
	}
	return found[0], nil
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

// wantOnly wants an error to be one of those that callers act on, or with nil none, and no other of them.
func wantOnly(t *testing.T, err, want error) {
	t.Helper()
	all := []error{
		cri.ErrCredentials, cri.ErrNotFound, cri.ErrUnavailable, cri.ErrExecTimeout, cri.ErrNoSocket, errors.ErrUnsupported,
	}
	for _, known := range all {
		if got := errors.Is(err, known); got != errors.Is(want, known) {
			t.Errorf("%v is %v: %t", err, known, got)
		}
	}
}

// container builds what a kubelet has made of a container of a pod.
func container(id, pod, name string, created int64) *criv1.ContainerStatus {
	return &criv1.ContainerStatus{
		Id: id, Metadata: &criv1.ContainerMetadata{Name: name}, State: criv1.ContainerState_CONTAINER_RUNNING,
		CreatedAt: created, StartedAt: created + 1,
		Labels: map[string]string{cri.LabelPodUID: pod, cri.LabelContainerName: name},
	}
}
