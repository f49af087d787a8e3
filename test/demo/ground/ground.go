// Package ground is where the demo plays: a control plane of its own with nodes that exist only in the API, the kinds
// of kruisekit, and its reconcilers in this process. The controllers of Deployments and ReplicaSets are upstream's
// (kube-controllers). The scheduler and the kubelets are stand-ins in this process (test/standin).
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// Options of a ground. Dir and AuditPolicy are required.
type Options struct {
	// Dir takes all that is written, and must not exist or be empty.
	Dir string
	// Nodes is how many there are.
	Nodes int
	// ContainerStart is how long a container takes to start, in a new pod as in one that stays.
	ContainerStart time.Duration
	// Kubectl asks for a kubectl, which the ground itself does not use.
	Kubectl bool
	// AuditPolicy says what the API server writes into the file Audit.
	AuditPolicy string
	// Say receives the progress of what takes time.
	Say io.Writer
	// Log is what the stand-ins log to.
	Log logr.Logger
}

// Ground is a running cluster. The caller of Start stops it.
type Ground struct {
	// Config authenticates as an administrator. Copy it before changing it.
	Config *rest.Config
	// Scheme knows the kinds of Kubernetes and of kruisekit.
	Scheme *runtime.Scheme
	// Kubeconfig and Audit are files: for an administrator, and the API server's audit log.
	Kubeconfig, Audit string
	// Path is the directory of kubectl, where Options.Kubectl asked for it.
	Path string

	plane *plane.Plane
	nodes *running
}

// Start brings it up. When it fails nothing is left running. The context bounds the start alone.
func Start(ctx context.Context, o Options) (g *Ground, err error) {
	programs, err := prepare(ctx, o.Kubectl, o.Say)
	if err != nil {
		return nil, err
	}
	g = &Ground{Audit: filepath.Join(o.Dir, "audit.log"), Path: filepath.Dir(programs["kubectl"])}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Stop())
			g = nil
		}
	}()
	if err := g.startPlane(ctx, o, programs); err != nil {
		return g, err
	}
	if err := g.connect(); err != nil {
		return g, err
	}
	if err := g.startNodes(ctx, o); err != nil {
		return g, err
	}
	return g, g.install()
}

// Stop takes everything down.
func (g *Ground) Stop() error {
	var failures []error
	if g.nodes != nil {
		failures = append(failures, g.nodes.stop())
	}
	if g.plane != nil {
		failures = append(failures, g.plane.Stop())
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
		case <-g.nodes.done:
			cancel(errors.Join(errors.New("the stand-ins of scheduler and kubelets have ended"), g.nodes.err))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (g *Ground) startPlane(ctx context.Context, o Options, programs map[string]string) error {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	policy := filepath.Join(o.Dir, "audit.yaml")
	if err := os.WriteFile(policy, []byte(o.AuditPolicy), 0o600); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	var err error
	g.plane, err = plane.Start(ctx, plane.Config{
		Dir: filepath.Join(o.Dir, "plane"), Programs: programs, Workloads: true, Bound: true,
		APIServerFlags: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + g.Audit},
	})
	if err != nil {
		return fmt.Errorf("start control plane: %w", err)
	}
	g.Kubeconfig = g.plane.Kubeconfig
	return nil
}

func (g *Ground) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", g.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1 // the API server's own priority and fairness suffices
	config.WarningHandler = rest.NoWarnings{}
	options, err := controllers.ManagerOptions()
	if err != nil {
		return err
	}
	g.Config, g.Scheme = config, options.Scheme
	return nil
}

// install installs the kinds in their storage version, which needs no webhook.
func (g *Ground) install() error {
	kinds, err := crd.Hub()
	if err != nil {
		return err
	}
	if _, err := envtest.InstallCRDs(g.Config, envtest.CRDInstallOptions{
		CRDs: kinds, Scheme: g.Scheme, MaxTime: time.Minute,
	}); err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	return nil
}

// Client reads what it watches in a namespace, and writes under a name of its own, until the context ends.
func (g *Ground) Client(ctx context.Context, agent, namespace string) (client.Client, error) {
	config := rest.CopyConfig(g.Config)
	config.UserAgent = agent
	c, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = g.Scheme
		o.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	go func() { _ = c.Start(ctx) }() // reads say what is wrong with it
	return c.GetClient(), nil
}
