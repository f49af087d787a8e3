package simulated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// grace is what KWOK gets to end in peace.
const grace = 5 * time.Second

// leaseDuration of the nodes, whose renewal after a quarter of it is a node's heartbeat: a thousand of them then write
// 20 times per second. Kubelets have 40 seconds.
const leaseDuration = 200 * time.Second

// Config says what to simulate, and where.
type Config struct {
	// Dir takes the state and the logs.
	Dir string
	// Programs are the paths of the programs by name.
	Programs map[string]string
	// Nodes is how many nodes there are.
	Nodes int
	// MaxGrace ends the containers of deleted pods before their grace period does. Zero honours the grace period.
	MaxGrace time.Duration
	// APIServerFlags are added to those of kube-apiserver.
	APIServerFlags []string
}

// Cluster is a control plane with simulated nodes.
type Cluster struct {
	Plane *plane.Plane
	// Nodes are the names of the nodes.
	Nodes []string
	// kwok plays the kubelets of the nodes.
	kwok *process.Process
}

// Start starts a control plane and KWOK, and returns when all nodes are ready. The context bounds the start alone: the
// programs run until Stop, or until this process ends.
func Start(ctx context.Context, config Config) (c *Cluster, err error) {
	p, err := plane.Start(ctx, plane.Config{
		Dir: filepath.Join(config.Dir, "plane"), Programs: config.Programs, Controllers: true, Bound: true,
		APIServerFlags:  config.APIServerFlags,
		ControllerFlags: []string{"--node-monitor-grace-period=" + (leaseDuration + time.Minute).String()},
	})
	if err != nil {
		return nil, err
	}
	c = &Cluster{Plane: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
			c = nil
		}
	}()
	rest, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return c, fmt.Errorf("read kubeconfig: %w", err)
	}
	rest.QPS = -1 // The API server's own priority and fairness suffices.
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return c, fmt.Errorf("make client: %w", err)
	}
	if err := c.simulate(config); err != nil {
		return c, err
	}
	if c.Nodes, err = register(ctx, client, config.Nodes); err != nil {
		return c, err
	}
	return c, c.kwok.Ready(ctx, func(ctx context.Context) error { return usable(ctx, client, config.Nodes) })
}

// simulate starts KWOK.
func (c *Cluster) simulate(config Config) error {
	rendered, err := config.render()
	if err != nil {
		return err
	}
	dir := filepath.Join(config.Dir, "kwok")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	path := filepath.Join(dir, "kwok.yaml")
	if err := os.WriteFile(path, []byte(rendered), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	c.kwok, err = process.Start(process.Spec{
		Name: "kwok", Path: config.Programs["kwok"], Dir: dir, Bound: true,
		Args: []string{"--kubeconfig=" + c.Plane.Kubeconfig, "--config=" + path, "--v=WARN"},
		Env: []string{
			// KWOK would else merge the configuration of the user.
			"KWOK_WORKDIR=" + filepath.Join(dir, "none"),
			// It turns over a lot and keeps little.
			"GOGC=300",
		},
	})
	return err
}

// Stop ends all programs.
func (c *Cluster) Stop() error {
	var err error
	if c.kwok != nil {
		err = c.kwok.Stop(grace)
	}
	return errors.Join(err, c.Plane.Stop())
}
