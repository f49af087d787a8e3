//go:build !windows

package cri_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// serveAt serves a fake below a root until the end of the test.
func serveAt(t *testing.T, root, path string, f *fake) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.serve(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.stop(path) })
}

func newRoot(t *testing.T) string {
	t.Helper()
	return filepath.Dir(socketPath(t))
}

// summary of what was detected: endpoints below the root, as found and as skipped.
type summary struct{ Found, Skipped []string }

func detect(t *testing.T, root string, s cri.Search) (summary, error) {
	t.Helper()
	s.Root = root
	got, err := cri.Detect(t.Context(), s, cri.Options{})
	if err != nil {
		return summary{}, err
	}
	t.Cleanup(func() {
		if err := got.Close(); err != nil {
			t.Error(err)
		}
	})
	var all summary
	for _, r := range got.Found {
		all.Found = append(all.Found, strings.TrimPrefix(r.Endpoint(), "unix://"+root+"/"))
	}
	for _, s := range got.Skipped {
		all.Skipped = append(all.Skipped, strings.TrimPrefix(s.Endpoint, "unix://"+root+"/"))
	}
	if got.Default() != got.Found[0] {
		t.Error("the default is not the first")
	}
	return all, nil
}

// usual are the places to look in, in their order.
func usual() []string {
	return []string{
		"containerd.sock", "containerd/containerd.sock", "crio.sock", "crio/crio.sock",
		"cri-dockerd.sock", "cri-dockerd/cri-dockerd.sock",
		"k3s/containerd/containerd.sock", "k3s/cri-dockerd/cri-dockerd.sock", "k0s/containerd.sock",
	}
}

func TestDetectInOrder(t *testing.T) {
	root := newRoot(t)
	for _, path := range usual() {
		serveAt(t, root, path, &fake{})
	}
	got, err := detect(t, root, cri.Search{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(summary{Found: usual()}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDetectOneSocketOnce(t *testing.T) {
	root := newRoot(t)
	serveAt(t, root, "containerd/containerd.sock", &fake{})
	if err := os.Symlink("containerd/containerd.sock", filepath.Join(root, "containerd.sock")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(root, "containerd/containerd.sock"), filepath.Join(root, "crio.sock")); err != nil {
		t.Fatal(err)
	}
	got, err := detect(t, root, cri.Search{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(summary{Found: []string{"containerd.sock"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDetectTheSocketThatIsAskedFor(t *testing.T) {
	root := newRoot(t)
	serveAt(t, root, "containerd.sock", &fake{})
	serveAt(t, root, "mine/my.sock", &fake{})
	got, err := detect(t, root, cri.Search{Socket: "mine/my.sock"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(summary{Found: []string{"mine/my.sock"}}, got); diff != "" {
		t.Error(diff)
	}
	_, err = detect(t, root, cri.Search{Socket: "absent.sock"})
	wantError(t, err, cri.ErrNoSocket)
	for _, outside := range []string{"../x.sock", "/run/x.sock", "mine/../../x"} {
		if _, err := detect(t, root, cri.Search{Socket: outside}); err == nil || errors.Is(err, cri.ErrNoSocket) {
			t.Errorf("socket %q: %v, want a refusal", outside, err)
		}
	}
}

func TestDetectSkipsWhatIsOfNoUse(t *testing.T) {
	failing := func(method string) *fake {
		return &fake{before: func(_ context.Context, called string) error {
			if strings.HasSuffix(called, "/"+method) {
				return status.Error(codes.Unknown, method+" is broken")
			}
			return nil
		}}
	}
	tests := map[string]struct {
		make func(t *testing.T, root string)
		want string // in the error when there is nothing else
	}{
		"no CRI v1": {func(t *testing.T, root string) {
			serveEmpty(t, filepath.Join(root, "crio.sock"))
		}, "does not serve CRI v1"},
		"a file": {func(t *testing.T, root string) {
			if err := os.WriteFile(filepath.Join(root, "crio.sock"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is not a socket"},
		"nobody listens": {func(t *testing.T, root string) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(root, "crio.sock"), Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			_ = l.Close()
		}, "connection refused"},
		"a directory that is none": {func(t *testing.T, root string) {
			if err := os.WriteFile(filepath.Join(root, "crio"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a directory"},
		"no file systems": {
			func(t *testing.T, root string) { serveAt(t, root, "crio.sock", failing("ImageFsInfo")) }, "ImageFsInfo is broken",
		},
		"no list of images": {
			func(t *testing.T, root string) { serveAt(t, root, "crio.sock", failing("ListImages")) }, "ListImages is broken",
		},
		"no version": {
			func(t *testing.T, root string) { serveAt(t, root, "crio.sock", failing("Version")) }, "Version is broken",
		},
		"no name": {
			func(t *testing.T, root string) { serveAt(t, root, "crio.sock", &fake{name: "-"}) }, "has no name",
		},
	}
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			root := newRoot(t)
			tt.make(t, root)
			_, err := detect(t, root, cri.Search{})
			if err == nil || errors.Is(err, cri.ErrNoSocket) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("alone: %v, want %q", err, tt.want)
			}
			serveAt(t, root, "k0s/containerd.sock", &fake{})
			got, err := detect(t, root, cri.Search{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"k0s/containerd.sock"}, got.Found); diff != "" || len(got.Skipped) != 1 {
				t.Errorf("with another: found %v, skipped %v", got.Found, got.Skipped)
			}
		})
	}
}

// serveEmpty serves gRPC, but not CRI, as the containerd that Docker brings.
func serveEmpty(t *testing.T, path string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

func TestDetectNothing(t *testing.T) {
	_, err := detect(t, newRoot(t), cri.Search{})
	wantError(t, err, cri.ErrNoSocket)
	if err != nil && !strings.Contains(err.Error(), "not found container runtime sock") {
		t.Errorf("error reads %v", err)
	}
	_, err = detect(t, filepath.Join(newRoot(t), "absent"), cri.Search{})
	wantError(t, err, cri.ErrNoSocket)
	if _, err := detect(t, "", cri.Search{}); err == nil || errors.Is(err, cri.ErrNoSocket) {
		t.Errorf("without a root: %v", err)
	}
}

func TestDetectEndsWithItsContext(t *testing.T) {
	root := newRoot(t)
	for _, path := range usual() {
		before, _, _ := hang("ListImages")
		serveAt(t, root, path, &fake{before: before})
	}
	begun := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		close(begun)
		_, err := cri.Detect(ctx, cri.Search{Root: root}, cri.Options{OpenTimeout: eventually})
		failed <- err
	}()
	<-begun
	cancel()
	wantError(t, <-failed, context.Canceled)
}
