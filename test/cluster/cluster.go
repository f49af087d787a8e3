package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// Cluster is a running cluster as one test sees it.
type Cluster struct {
	// Config authenticates as an administrator. Copy it before changing it.
	Config *rest.Config
	// Client reads and writes live, without a cache.
	Client client.Client
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Level of the cluster.
	Level Level
	// Etcd is the URL of etcd, for a test of what is stored. It is empty unless the control plane is private.
	Etcd string

	kubectl string
}

// Start gives the test a cluster of the wanted level. What has to end with the test ends at its cleanup. Without the
// means for that level the test is skipped, or fails where KRUISEKIT_REQUIRE_CLUSTER=1.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	o = o.withDefaults()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	programs, err := binaries.Open()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, etcd, err := start(ctx, t, programs, o)
	if err != nil {
		missing(t, err)
	}
	c, err := connect(programs, kubeconfig, o)
	if err != nil {
		t.Fatal(err)
	}
	c.Etcd = etcd
	if err := c.InstallCRDs(ctx, o.CRDDirs...); err != nil {
		t.Fatal(err)
	}
	return c
}

func connect(programs binaries.Cache, kubeconfig string, o Options) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1 // the API server's own priority and fairness suffices
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	live, err := client.New(config, client.Options{Scheme: o.Scheme})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	assets, err := programs.Assets()
	if err != nil {
		return nil, err
	}
	return &Cluster{Config: config, Client: live, Kubeconfig: kubeconfig, Level: o.Level, kubectl: assets["kubectl"]}, nil
}

// Kubectl runs kubectl as administrator and returns what it prints. Its error contains what it printed to stderr.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.run(exec.CommandContext(ctx, c.kubectl, args...))
}

// Shell runs a script, as a user pastes it, and returns what it prints.
func (c *Cluster) Shell(ctx context.Context, script string) (string, error) {
	return c.run(exec.CommandContext(ctx, "sh", "-ec", script))
}

func (c *Cluster) run(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// kubectl lives for a second: memory is cheaper than collections.
	cmd.Env = append(os.Environ(), "GOGC=off", "GOMEMLIMIT=512MiB", "KUBECONFIG="+c.Kubeconfig,
		"PATH="+filepath.Dir(c.kubectl)+":"+os.Getenv("PATH"))
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%v: %w: %s", cmd.Args, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
