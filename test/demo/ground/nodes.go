package ground

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/test/standin"
)

// nodesAgent is the agent that binds pods and reports their statuses.
const nodesAgent = "kruisekit-demo-nodes"

// startNodes registers the nodes, and runs the stand-ins of the scheduler and of the kubelets. The context bounds the
// registration alone: Stop ends the stand-ins.
func (g *Ground) startNodes(ctx context.Context, o Options) error {
	mgr, err := g.manager(nodesAgent, o.Log, ctrl.Options{})
	if err != nil {
		return err
	}
	nodes := &standin.Nodes{Client: mgr.GetClient(), Start: o.ContainerStart}
	for i := range o.Nodes {
		nodes.Names = append(nodes.Names, fmt.Sprintf("node-%d", i+1))
	}
	if err := nodes.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up nodes: %w", err)
	}
	if err := nodes.Register(ctx); err != nil {
		return err
	}
	g.nodes = start(context.WithoutCancel(ctx), mgr)
	return nil
}
