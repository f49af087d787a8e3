// Package ground is where the demo plays: a control plane of its own with nodes that exist only in the API, the kinds
// of kruisekit, and its reconcilers in this process. The controllers of Deployments and ReplicaSets are upstream's
// (kube-controllers). The scheduler and the kubelets are a stand-in in this process (test/standin).
//
// When not to use it: in tests, which have test/cluster.
package ground

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
	"github.com/kruisekit/kruisekit/test/standin"
)

// Options of a ground.
type Options struct {
	// Dir takes all that is written, and must not exist or be empty.
	Dir string
	// Nodes is how many there are.
	Nodes int
	// ContainerStart is how long a container takes to start, in a new pod as in one that stays.
	ContainerStart time.Duration
	// AuditPolicy says what the API server writes into the file Audit.
	AuditPolicy string
	// Say receives the progress of what takes time.
	Say io.Writer
	// Log is what the stand-in and the reconcilers log to.
	Log logr.Logger
}

// Ground is a running cluster. The caller of Start stops it.
type Ground struct {
	// Audit is the file of the API server's audit log.
	Audit string

	options Options
	config  *rest.Config
	scheme  *runtime.Scheme
	plane   *plane.Plane
	stops   []func() error
}

// Start brings it up. When it fails nothing is left running. The context bounds the start alone.
func Start(ctx context.Context, o Options) (g *Ground, err error) {
	programs, err := prepare(ctx, o.Say)
	if err != nil {
		return nil, err
	}
	g = &Ground{Audit: filepath.Join(o.Dir, "audit.log"), options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Stop())
			g = nil
		}
	}()
	if err := g.startPlane(ctx, programs); err != nil {
		return g, err
	}
	if g.config, err = clientcmd.BuildConfigFromFlags("", g.plane.Kubeconfig); err != nil {
		return g, fmt.Errorf("read kubeconfig: %w", err)
	}
	g.config.QPS = -1 // the API server's own priority and fairness suffices
	g.config.WarningHandler = rest.NoWarnings{}
	options, err := controllers.ManagerOptions()
	if err != nil {
		return g, err
	}
	g.scheme = options.Scheme
	if err := g.startNodes(ctx); err != nil {
		return g, err
	}
	// In their storage version, the kinds need no webhook.
	kinds, err := crd.Hub()
	if err != nil {
		return g, err
	}
	if _, err := envtest.InstallCRDs(g.config, envtest.CRDInstallOptions{
		CRDs: kinds, Scheme: g.scheme, MaxTime: time.Minute,
	}); err != nil {
		return g, fmt.Errorf("install CRDs: %w", err)
	}
	return g, nil
}

// Stop takes everything down, the last started first.
func (g *Ground) Stop() error {
	var failures []error
	for i := range g.stops {
		failures = append(failures, g.stops[len(g.stops)-1-i]())
	}
	return errors.Join(failures...)
}

// While gives a context that also ends when a program of the cluster does; its cause says so.
func (g *Ground) While(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-g.plane.Done():
			cancel(errors.New("a program of the control plane has ended; its log says why"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (g *Ground) startPlane(ctx context.Context, programs map[string]string) (err error) {
	dir := g.options.Dir
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	policy := filepath.Join(dir, "audit.yaml")
	if err := os.WriteFile(policy, []byte(g.options.AuditPolicy), 0o600); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	g.plane, err = plane.Start(ctx, plane.Config{
		Dir: filepath.Join(dir, "plane"), Programs: programs, Workloads: true, Bound: true,
		APIServerFlags: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + g.Audit},
	})
	if err != nil {
		return fmt.Errorf("start control plane: %w", err)
	}
	g.stops = append(g.stops, g.plane.Stop)
	return nil
}

// startNodes registers the nodes, and runs the stand-in of the scheduler and of the kubelets.
func (g *Ground) startNodes(ctx context.Context) error {
	mgr, err := g.manager("kruisekit-demo-nodes", ctrl.Options{})
	if err != nil {
		return err
	}
	live, err := client.New(mgr.GetConfig(), client.Options{Scheme: g.scheme})
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	kubelet := &standin.Kubelet{Client: live, Start: g.options.ContainerStart}
	for i := range g.options.Nodes {
		node := &corev1.Node{}
		node.Name = fmt.Sprintf("node-%d", i+1)
		node.Status.NodeInfo.KubeletVersion = "simulated"
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := live.Create(ctx, node); err != nil {
			return fmt.Errorf("create node: %w", err)
		}
		kubelet.Nodes = append(kubelet.Nodes, node.Name)
	}
	if err := kubelet.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up nodes: %w", err)
	}
	g.run(mgr)
	return nil
}

// Manage runs the reconcilers of the library in this process, until the ground stops, under the name of an agent. There
// are no webhooks: none of what is shown needs one.
func (g *Ground) Manage(ctx context.Context, agent string) error {
	options, err := controllers.ManagerOptions()
	if err != nil {
		return err
	}
	mgr, err := g.manager(agent, options)
	if err != nil {
		return err
	}
	if err := controllers.AddToManager(ctx, mgr, controllers.Options{
		Names: []string{"*", "native"}, Native: native.Options{Deployments: true},
	}); err != nil {
		return err
	}
	g.run(mgr)
	return nil
}

// manager returns a manager that the API server knows as agent.
func (g *Ground) manager(agent string, options ctrl.Options) (ctrl.Manager, error) {
	options.Scheme, options.Logger = g.scheme, g.options.Log
	options.Metrics = server.Options{BindAddress: "0"}
	options.HealthProbeBindAddress = "0"
	mgr, err := ctrl.NewManager(g.as(agent), options)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	return mgr, nil
}

// run runs a manager until the ground stops.
func (g *Ground) run(mgr ctrl.Manager) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	g.stops = append(g.stops, func() error {
		cancel()
		return <-ended
	})
}

func (g *Ground) as(agent string) *rest.Config {
	config := rest.CopyConfig(g.config)
	config.UserAgent = agent
	return config
}

// Client reads what it watches in a namespace, and writes under a name of its own, until the context ends.
func (g *Ground) Client(ctx context.Context, agent, namespace string) (client.Client, error) {
	c, err := cluster.New(g.as(agent), func(o *cluster.Options) {
		o.Scheme = g.scheme
		o.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	go func() { _ = c.Start(ctx) }() // reads say what is wrong with it
	return c.GetClient(), nil
}
