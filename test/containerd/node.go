//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/nodes"
)

// eventually bounds what is to happen soon. It is long because the machine may be busy.
const eventually = 30 * time.Second

// Node is a containerd of a test's own. It has a /run and a /var/lib of its own and processes of its own, all of which
// end with the test; it has no network, so its pods use that of the machine.
type Node struct {
	// Cgroup is the parent for those of pods. It is removed at the end.
	Cgroup string

	dir        string
	programs   map[string]string
	holder     *exec.Cmd
	containerd *exec.Cmd
}

// firstOfNode makes the mounts and becomes the first process.
const firstOfNode = `set -e
mount --make-rprivate /
mount -t proc none /proc
for dir in run lib; do mkdir -p "$1/$dir"; done
mount --bind "$1/lib" /var/lib
mount --bind "$1/run" /run
touch "$1/ready"
exec "$2"
`

const nodeConfig = `version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "registry.test/pause:1"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "%s"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.internal.v1.opt']
  path = "/var/lib/containerd/opt"
`

// otherRuntime has containers made by another program than runc.
const otherRuntime = `
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = %q
`

// runtimeVariable is the environment variable with the path of an OCI runtime to use instead of the runc that was
// built.
const runtimeVariable = "KRUISEKIT_OCI_RUNTIME"

// Programs of a node, by name. It skips the test where there can be no node.
func Programs(t *testing.T) map[string]string {
	t.Helper()
	programs, err := findPrograms()
	lacking := errors.Is(err, binaries.ErrMissing) || errors.Is(err, nodes.ErrUnavailable)
	if lacking && os.Getenv("KRUISEKIT_REQUIRE_CLUSTER") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return programs
}

func findPrograms() (map[string]string, error) {
	cache, err := binaries.Open()
	if err != nil {
		return nil, err
	}
	config, err := nodes.OfMachine(cache)
	if err != nil {
		return nil, err
	}
	return config.Programs, config.Check()
}

// Start starts a node that pulls all images from a registry.
func Start(t *testing.T, programs map[string]string, registryURL string) *Node {
	t.Helper()
	// Short, for sockets, and with nothing of the machine mounted over it in the node.
	dir, err := os.MkdirTemp("", "cri-node-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{dir: dir, Cgroup: "kruisekit-" + filepath.Base(dir), programs: programs}
	t.Cleanup(func() { n.down(t) })
	config := fmt.Sprintf(nodeConfig, filepath.Join(dir, "registries"))
	if path := os.Getenv(runtimeVariable); path != "" {
		config += fmt.Sprintf(otherRuntime, path)
	}
	for path, content := range map[string]string{
		"containerd.toml": config,
		"registries/_default/hosts.toml": fmt.Sprintf(
			"server = %[1]q\n[host.%[1]q]\n  capabilities = [\"pull\", \"resolve\"]\n", registryURL),
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	//nolint:noctx // it outlives the context of the test, for its cleanup
	n.holder = exec.Command("/bin/sh", "-c", firstOfNode, "sh", dir, programs["pause"])
	n.holder.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	n.holder.Stderr = os.Stderr
	if err := n.holder.Start(); err != nil {
		t.Fatal(err)
	}
	n.await(t, func() error {
		_, err := os.Stat(filepath.Join(dir, "ready"))
		return err
	})
	n.StartContainerd(t)
	return n
}

// await waits until a check returns nil.
func (*Node) await(t *testing.T, check func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, eventually, true,
		func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		}); err != nil {
		t.Fatal(last)
	}
}

// listens reports whether containerd accepts connections. Its socket is there a moment before that.
func (n *Node) listens() error {
	conn, err := net.Dial("unix", n.Socket()) //nolint:noctx // returns at once
	if err != nil {
		return err
	}
	return conn.Close()
}

// Run is the node's /run.
func (n *Node) Run() string { return filepath.Join(n.dir, "run") }

// Socket is where containerd listens, as soon as it is there.
func (n *Node) Socket() string { return filepath.Join(n.Run(), "containerd", "containerd.sock") }

// StartContainerd starts it again.
func (n *Node) StartContainerd(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(n.dir, "containerd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	n.containerd = exec.Command("nsenter", //nolint:noctx // as above
		"--target", strconv.Itoa(n.holder.Process.Pid), "--mount", "--pid", "--", "setpriv", "--pdeathsig", "KILL", "--",
		n.programs["containerd"], "-c", filepath.Join(n.dir, "containerd.toml"))
	n.containerd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	n.containerd.Stdout, n.containerd.Stderr = log, log
	path := []string{filepath.Dir(n.programs["containerd"]), filepath.Dir(n.programs["runc"]), os.Getenv("PATH")}
	n.containerd.Env = append(os.Environ(), "PATH="+strings.Join(path, ":"))
	if err := n.containerd.Start(); err != nil {
		t.Fatal(err)
	}
	n.await(t, n.listens)
}

// StopContainerd kills it. Containers go on.
func (n *Node) StopContainerd(t *testing.T) {
	t.Helper()
	if err := n.containerd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = n.containerd.Wait()
	if err := os.Remove(n.Socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// down ends all processes of the node with its first, and its mounts with them.
func (n *Node) down(t *testing.T) {
	t.Helper()
	if t.Failed() {
		if log, err := os.ReadFile(filepath.Join(n.dir, "containerd.log")); err == nil {
			t.Logf("containerd:\n%s", log[max(0, len(log)-8<<10):])
		}
	}
	if n.containerd != nil && n.containerd.Process != nil {
		n.StopContainerd(t)
	}
	if n.holder != nil && n.holder.Process != nil {
		_ = n.holder.Process.Kill()
		_ = n.holder.Wait()
	}
	if err := os.RemoveAll(n.dir); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), eventually)
	defer cancel()
	if err := nodes.RemoveCgroups(ctx, n.Cgroup); err != nil {
		t.Error(err)
	}
}
