package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/internal/keeper"
	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
	"github.com/kruisekit/kruisekit/test/cluster/nodes"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
	"github.com/kruisekit/kruisekit/test/cluster/simulated"
)

// Subcommand of the command that runs Keep.
const Subcommand = "keep"

// Request says what is to be kept.
type Request struct {
	// Dir of the keeper.
	Dir string
	// Nodes is how many nodes are simulated. Without any, the plane has no controllers and no scheduler either.
	Nodes int
	// Idle is how long the plane outlives its last user. Zero: until its keeper is stopped.
	Idle time.Duration
}

// Attach takes a hold on the requested plane and starts it where there is none. executable returns the path of the
// command, and is called only then.
func Attach(ctx context.Context, r Request, executable func() (string, error)) (*keeper.Lease, error) {
	return keeper.Attach(ctx, r.Dir, func() (*process.Process, error) {
		path, err := executable()
		if err != nil {
			return nil, err
		}
		return process.Start(process.Spec{Name: "keeper", Dir: r.Dir, Path: path, Args: []string{
			Subcommand, "-dir", r.Dir, "-nodes", strconv.Itoa(r.Nodes), "-idle", r.Idle.String(),
		}})
	})
}

// Keep runs the keeper until it is idle or the context ends.
func Keep(ctx context.Context, c binaries.Cache, r Request) error {
	config := keeper.Config{Dir: r.Dir, Idle: r.Idle}
	var err error
	if r.Nodes == 0 {
		config.Plane.Programs, err = c.Assets()
	} else {
		config.Plane, err = SimulatedPlane(c)
		config.Extend = func(ctx context.Context, p *plane.Plane, dir string) (func() error, error) {
			added, err := Simulate(ctx, p, Simulation{Kwok: config.Plane.Programs["kwok"], Dir: dir, Nodes: r.Nodes})
			if err != nil {
				return nil, err
			}
			return added.Stop, nil
		}
	}
	if err != nil {
		return err
	}
	return keeper.Run(ctx, config)
}

// SimulatedPlane is the control plane that simulated nodes need.
func SimulatedPlane(c binaries.Cache) (plane.Config, error) {
	programs, err := c.Paths(binaries.Simulated)
	if err != nil {
		return plane.Config{}, err
	}
	return plane.Config{
		Programs: programs, Controllers: true,
		// Longer than the leases of simulated nodes, which are renewed rarely because there are many.
		ControllerFlags: []string{"--node-monitor-grace-period=" + (leaseDuration + time.Minute).String()},
	}, nil
}

// leaseDuration of simulated nodes: a thousand of them then write 20 times per second.
const leaseDuration = 200 * time.Second

// Simulation says which nodes to simulate on a plane.
type Simulation struct {
	Kwok  string
	Dir   string // of the plane
	Nodes int
}

// Simulate adds simulated nodes to a plane.
func Simulate(ctx context.Context, p *plane.Plane, s Simulation) (*simulated.Nodes, error) {
	added, err := simulated.Start(ctx, simulated.Config{
		Kwok:          s.Kwok,
		Kubeconfig:    p.Kubeconfig,
		Dir:           filepath.Join(s.Dir, "kwok"),
		Nodes:         s.Nodes,
		LeaseDuration: leaseDuration,
		Bound:         true,
	})
	if err != nil {
		return nil, fmt.Errorf("simulate nodes: %w", err)
	}
	return added, nil
}

// RealNodes is the configuration of the machine's one cluster of real nodes. Without its programs, which the error is
// about, it can still be stopped.
func RealNodes(c binaries.Cache) (nodes.Config, error) {
	programs, err := c.Paths(binaries.Nodes)
	return nodes.Config{Dir: c.State("real"), Programs: programs, Network: nodes.DefaultNetwork()}, err
}

// SharedDir is where tests share a control plane: those of one work tree, with the same programs.
func SharedDir(c binaries.Cache, programs map[string]string) string {
	hash := sha256.New()
	fmt.Fprintln(hash, c.Root(), programs["etcd"], programs["kube-apiserver"])
	return c.State("shared-" + hex.EncodeToString(hash.Sum(nil))[:12])
}

// Executable builds the command into dir and returns its path. The go command's own cache makes that fast.
func Executable(ctx context.Context, c binaries.Cache, dir string) (string, error) {
	path := filepath.Join(dir, "cluster")
	// A running program cannot be overwritten, and a keeper that is ending may be one.
	if err := os.RemoveAll(path); err != nil {
		return "", fmt.Errorf("build the cluster command: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./test/cluster/cmd/cluster")
	cmd.Dir = c.Root()
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the cluster command: %w\n%s", err, output)
	}
	return path, nil
}
