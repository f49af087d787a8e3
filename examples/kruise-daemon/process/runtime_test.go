package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/examples/kruise-daemon/options"
	"github.com/kruisekit/kruisekit/examples/reference/release"
	"github.com/kruisekit/kruisekit/test/rig/critest"
)

// parse takes what a node's directory of sockets is, and more flags.
func parse(t *testing.T, dir string, args ...string) options.Options {
	t.Helper()
	o, err := options.Parse(append([]string{"--socket-dir=" + dir, "--runtime-timeout=0", "--addr=0"}, args...),
		func(name string) string {
			return map[string]string{"NODE_NAME": "node-a"}[name]
		})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// serve starts a runtime below a directory of sockets.
func serve(t *testing.T, dir, socket string) *critest.Runtime {
	t.Helper()
	path := filepath.Join(dir, socket)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	return critest.Serve(t, path)
}

// The flag names a socket below the directory, and no other will do.
func TestDetect(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, "containerd.sock")
	flags := parse(t, dir, "--socket-file=my/runtime.sock").Runtime
	if _, err := detect(t.Context(), flags); !errors.Is(err, cri.ErrNoSocket) ||
		!strings.Contains(err.Error(), "not found container runtime sock") {
		t.Errorf("without the socket: %v", err)
	}
	serve(t, dir, "my/runtime.sock")
	for want, r := range map[string]options.Runtime{"my/runtime.sock": flags, "containerd.sock": parse(t, dir).Runtime} {
		found, err := detect(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if got := found.Default().Endpoint(); len(found.Found) != 1 || got != "unix://"+filepath.Join(dir, want) {
			t.Errorf("found %s of %d, want %s", got, len(found.Found), want)
		}
		if err := found.Close(); err != nil {
			t.Error(err)
		}
	}
}

// One that does not serve CRI v1 is passed over; where there is no other, the daemon does not start.
func TestOldRuntime(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, "containerd.sock").Break("ImageFsInfo")
	o := parse(t, dir)
	if err := Run(t.Context(), &rest.Config{Host: "127.0.0.1:1"}, o); err == nil ||
		!strings.Contains(err.Error(), "CRI v1") {
		t.Errorf("%v, want an error that names CRI v1", err)
	}
	serve(t, dir, "crio.sock")
	found, err := detect(t.Context(), o.Runtime)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	if len(found.Found) != 1 || !strings.HasSuffix(found.Default().Endpoint(), "crio.sock") || len(found.Skipped) != 1 {
		t.Errorf("found %s of %d, skipped %v", found.Default().Endpoint(), len(found.Found), found.Skipped)
	}
}

// After a boot the runtime may come after the daemon.
func TestLateRuntime(t *testing.T) {
	dir := t.TempDir()
	o := parse(t, dir, "--runtime-timeout=1m")
	waited := make(chan error, 1)
	go func() {
		found, err := detect(t.Context(), o.Runtime)
		if err == nil {
			err = found.Close()
		}
		waited <- err
	}()
	serve(t, dir, "containerd.sock")
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// Every client of the process takes from one limit: what is copied of the configuration has it too.
func TestOneLimit(t *testing.T) {
	given := &rest.Config{QPS: 1000, Burst: 1000, UserAgent: "other"}
	limited := client(given, parse(t, t.TempDir(), "--rest-config-qps=0.001", "--rest-config-burst=1"))
	if limited.UserAgent != "kruise-daemon" || given.UserAgent != "other" {
		t.Errorf("user agent %q", limited.UserAgent)
	}
	if !rest.CopyConfig(limited).RateLimiter.TryAccept() || rest.CopyConfig(limited).RateLimiter.TryAccept() {
		t.Error("the second client is not limited by what the first has taken")
	}
	o := parse(t, t.TempDir())
	o.Release = release.Of(UserAgent, "v0.1.0")
	if built := client(given, o); built.UserAgent != "kruise-daemon/v0.1.0" {
		t.Errorf("the user agent of a release is %q", built.UserAgent)
	}
	free := client(given, parse(t, t.TempDir(), "--rest-config-qps=-1"))
	if free.RateLimiter != nil || free.QPS >= 0 {
		t.Errorf("limited by %v and %g", free.RateLimiter, free.QPS)
	}
}
