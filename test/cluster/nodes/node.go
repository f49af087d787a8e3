//go:build linux

package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// own is where a node finds its configuration. It is below the node's own /run, so that nothing in a node depends on
// where the state directory is.
const own = "/run/kruisekit"

const socket = "/run/containerd/containerd.sock"

// first makes the node's mounts and becomes its first process. Mounts of the machine reach the node, and none comes
// back; within the node they propagate, as kubelet wants it for volumes.
const first = `set -e
mount --make-rslave /
mount --make-rshared /
mount -t proc none /proc
for dir in run var/lib var/log; do mount --bind "$1/$dir" "/$dir"; done
touch ` + own + `/ready
exec "$2"
`

// startNode starts a node and returns when its container runtime serves. Its kubelet registers in its own time.
func (c Config) startNode(ctx context.Context, p *plane.Plane, node int) error {
	if err := c.configure(p, node); err != nil {
		return err
	}
	if err := makeCgroups(node); err != nil {
		return err
	}
	return c.boot(ctx, node)
}

// boot starts a node that is configured.
func (c Config) boot(ctx context.Context, node int) error {
	holder, err := c.run(process.Spec{
		Name: Name(node), Path: "/bin/sh", Namespaces: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Args: []string{"-c", first, "sh", c.inNode(node, ""), c.Programs["pause"]},
	})
	if err != nil {
		return err
	}
	if err := holder.Ready(ctx, present(c.inNode(node, own+"/ready"))); err != nil {
		return err
	}
	if err := join(ctx, node, holder.PID); err != nil {
		return err
	}
	if err := c.StartRuntime(ctx, node); err != nil {
		return err
	}
	_, err = c.runIn(holder.PID, program{node: node, name: "kubelet", restarts: true, args: []string{
		"--config=" + own + "/kubelet.yaml", "--kubeconfig=" + own + "/kubeconfig", "--hostname-override=" + Name(node),
		"--node-ip=" + nodeIP(node), fmt.Sprintf("--node-labels=topology.kubernetes.io/zone=zone-%d", node),
	}})
	return err
}

// always starts a program again, as a service manager does: a kubelet ends where containerd serves and the CRI plugin
// does not yet.
const always = `while :; do setpriv --pdeathsig KILL -- "$@"; sleep 1; done`

// program is one to run in a node.
type program struct {
	node int
	name string
	args []string
	// restarts starts the program again when it ends.
	restarts bool
}

func (c Config) runIn(holder int, p program) (*process.Process, error) {
	// Entering a PID namespace makes nsenter the parent of the program rather than the program itself. It is the one on
	// record, so the program is to die with it.
	words := []string{"setpriv", "--pdeathsig", "KILL", "--"}
	if p.restarts {
		words = append(words, "/bin/sh", "-c", always, "sh")
	}
	command := enter(holder, slices.Concat(words, []string{c.Programs[p.name]}, p.args)...)
	return c.run(process.Spec{Name: fmt.Sprintf("%s-%d", p.name, p.node), Path: "nsenter", Args: command[1:]})
}

func (c Config) run(spec process.Spec) (*process.Process, error) {
	spec.Dir = c.records()
	spec.Env = append(spec.Env, c.marker(), "PATH="+c.searchPath())
	return process.Start(spec)
}

// searchPath lets containerd find its shim and runc.
func (c Config) searchPath() string {
	var dirs []string
	for _, name := range []string{"containerd", "runc"} {
		dirs = append(dirs, filepath.Dir(c.Programs[name]))
	}
	return strings.Join(append(dirs, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ":")
}

func present(path string) func(context.Context) error {
	return func(context.Context) error {
		_, err := os.Stat(path)
		return err //nolint:wrapcheck // the caller says what it waits for
	}
}
