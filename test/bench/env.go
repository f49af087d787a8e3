package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/simulated"
)

const (
	// namespace of what is measured.
	namespace = "bench"
	// system is the namespace of the manager.
	system = "kruise-system"
)

// env is what a scenario runs on.
type env struct {
	programs map[string]string
	out      string
	quick    bool
	report   *report

	dir     string
	config  *rest.Config
	client  client.Client // live
	cluster *simulated.Cluster
	// replicas of the manager that run.
	replicas []*replica
}

// pick returns the size of a quick run or of a full one.
func (e *env) pick(quick, full int) int {
	if e.quick {
		return quick
	}
	return full
}

// prepare builds what is missing of the programs of the cluster, the manager and the daemon.
func prepare(ctx context.Context, out string) (map[string]string, error) {
	store, err := binaries.Open()
	if err != nil {
		return nil, err
	}
	if err := store.Build(ctx, binaries.Simulated, os.Stdout); err != nil {
		return nil, fmt.Errorf("build the cluster: %w", err)
	}
	programs, err := store.Paths(binaries.Simulated)
	if err != nil {
		return nil, err
	}
	programs["root"] = store.Root()
	for _, name := range []string{"kruise-manager", "kruise-daemon"} {
		programs[name] = filepath.Join(out, name)
		// As hack/deploy builds it.
		build := exec.CommandContext(ctx, "go", "build", "-modfile=programs.mod", "-tags=grpcnotrace", "-trimpath",
			"-ldflags=-s -w", "-o", programs[name], "./examples/"+name)
		build.Dir, build.Env = store.Root(), append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", name, err, output)
		}
	}
	return programs, nil
}

// one runs a scenario on a control plane of its own. Whatever happens, nothing is left running.
func one(ctx context.Context, s scenario, e *env) (err error) {
	if e.dir, err = os.MkdirTemp("", "kruisekit-bench-"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() {
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(e.dir))
		} else {
			err = fmt.Errorf("%w\nthe logs are in %s", err, e.dir)
		}
	}()
	defer func() { err = errors.Join(err, e.stop()) }()
	if err := e.start(ctx, e.pick(s.quick, s.full)); err != nil {
		return err
	}
	return s.run(ctx, e)
}

func (e *env) start(ctx context.Context, nodes int) (err error) {
	address, err := outbound(ctx)
	if err != nil {
		return err
	}
	if e.cluster, err = simulated.Start(ctx, simulated.Config{
		Dir: e.dir, Programs: e.programs, Nodes: nodes, MaxGrace: time.Second,
	}); err != nil {
		return fmt.Errorf("start cluster: %w", err)
	}
	if e.config, err = clientcmd.BuildConfigFromFlags("", e.cluster.Plane.Kubeconfig); err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	e.config.QPS, e.config.WarningHandler = -1, rest.NoWarnings{}
	options, err := controllers.ManagerOptions()
	if err != nil {
		return err
	}
	if e.client, err = client.New(e.config, client.Options{Scheme: options.Scheme}); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return e.install(ctx, address)
}

// outbound is an address of this machine that an endpoint can have, which a loopback address cannot.
func outbound(ctx context.Context) (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("find an address: %w", err)
	}
	for _, address := range addresses {
		if ip, is := address.(*net.IPNet); is && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			return ip.IP.String(), ctx.Err()
		}
	}
	return "", errors.New("this machine has no IPv4 address but loopback, where API servers call no webhook")
}

// install installs the kinds, the webhooks and the rights, with a Service whose endpoint is a process of this machine.
func (e *env) install(ctx context.Context, address string) error {
	for _, name := range []string{system, "kruise-daemon-config", namespace} {
		if err := e.kubectl(ctx, "", "create", "namespace", name); err != nil {
			return err
		}
	}
	for _, part := range []string{"crd/both", "webhook", "rbac"} {
		if err := e.kubectl(ctx, "", "apply", "--server-side", "--force-conflicts",
			"-k", filepath.Join(e.programs["root"], "config", part)); err != nil {
			return err
		}
	}
	// The selector would have the control plane replace the endpoints.
	if err := e.kubectl(ctx, "", "patch", "service", "kruise-webhook-service", "-n", system, "--type=json",
		"-p", `[{"op":"remove","path":"/spec/selector"}]`); err != nil {
		return err
	}
	return e.kubectl(ctx, fmt.Sprintf(endpoints, system, address, webhookPort), "apply", "-f", "-")
}

const endpoints = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kruise-webhook-service-bench
  namespace: %s
  labels: {kubernetes.io/service-name: kruise-webhook-service, endpointslice.kubernetes.io/managed-by: bench}
addressType: IPv4
endpoints: [{addresses: [%q], conditions: {ready: true}}]
ports: [{name: webhook, port: %d, protocol: TCP}]
`

func (e *env) kubectl(ctx context.Context, stdin string, args ...string) error {
	var stderr bytes.Buffer
	args = append([]string{"--kubeconfig", e.cluster.Plane.Kubeconfig}, args...)
	cmd := exec.CommandContext(ctx, e.programs["kubectl"], args...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kubectl %v: %w: %s", args[2:], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

func (e *env) stop() error {
	var failures []error
	for _, r := range e.replicas {
		failures = append(failures, r.stop())
	}
	if e.cluster != nil {
		failures = append(failures, e.cluster.Stop())
	}
	return errors.Join(failures...)
}
