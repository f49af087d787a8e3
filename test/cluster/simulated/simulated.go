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
)

// grace is what KWOK gets to end in peace.
const grace = 5 * time.Second

// Nodes are simulated nodes and the process that plays their kubelets.
type Nodes struct {
	config  Config
	client  kubernetes.Interface
	version string
	names   []string
	process *process.Process
}

// Start runs KWOK, creates the nodes and returns when all of them are ready. The context bounds the start alone: KWOK
// runs until Stop.
func Start(ctx context.Context, c Config) (*Nodes, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	rest, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	rest.QPS = -1 // The API server's own priority and fairness suffices.
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the server's version: %w", err)
	}
	n := &Nodes{config: c, client: client, version: version.GitVersion}
	if err := n.run(); err != nil {
		return nil, err
	}
	if err := n.add(ctx); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// run starts the process.
func (n *Nodes) run() error {
	rendered, err := n.config.render()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(n.config.Dir, 0o750); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	path := filepath.Join(n.config.Dir, "kwok.yaml")
	if err := os.WriteFile(path, []byte(rendered), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	n.process, err = process.Start(process.Spec{
		Name: "kwok", Path: n.config.Kwok, Dir: n.config.Dir, Bound: n.config.Bound,
		Args: []string{"--kubeconfig=" + n.config.Kubeconfig, "--config=" + path, "--v=WARN"},
		Env: []string{
			// KWOK would else merge the configuration of the user.
			"KWOK_WORKDIR=" + filepath.Join(n.config.Dir, "none"),
			// It turns over a lot and keeps little.
			"GOGC=300",
		},
	})
	return err
}

// Stop ends KWOK. The nodes stay in the API, and their leases run out.
func (n *Nodes) Stop() error {
	return n.process.Stop(grace)
}

// while returns a context that also ends when KWOK does.
func (n *Nodes) while(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-n.process.Done():
			cancel(n.process.Failure())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
