//go:build simulated

package dashboard_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

const (
	root   = "../../.." // of the repository
	pods   = 300
	nodes  = 60
	system = "kruise-system"
)

// ground is a cluster with a manager, and a dashboard.
type ground struct {
	*cluster.Cluster

	t   *testing.T
	dir string
	url string // that the dashboard has printed
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{
		Cluster: cluster.Start(t, cluster.Options{Level: cluster.Simulated, Nodes: nodes}), t: t, dir: t.TempDir(),
	}
	g.install()
	g.manager()
	return g
}

// kubectl runs kubectl, with a manifest where one is given.
func (g *ground) kubectl(manifest string, args ...string) string {
	g.t.Helper()
	out, err := g.try(manifest, args...)
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

func (g *ground) try(manifest string, args ...string) (string, error) {
	if manifest != "" {
		file := filepath.Join(g.dir, "manifest.yaml")
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			return "", err
		}
		args = append(args, "-f", file)
	}
	return g.Kubectl(g.t.Context(), args...)
}

// install installs the kinds, the webhooks and the rights, with a Service whose endpoint is a process of this machine.
func (g *ground) install() {
	g.t.Helper()
	for _, name := range []string{system, "kruise-daemon-config", "shop"} {
		g.kubectl("", "create", "namespace", name)
	}
	for _, part := range []string{"crd/both", "webhook", "rbac"} {
		g.kubectl("", "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(root, "config", part))
	}
	// The selector would have the control plane replace the endpoints.
	g.kubectl("", "patch", "service", "kruise-webhook-service", "-n", system, "--type=json",
		"-p", `[{"op":"remove","path":"/spec/selector"}]`)
}

// manager starts the manager, and waits until it is ready.
func (g *ground) manager() {
	g.t.Helper()
	webhook, health := freePort(g.t), freePort(g.t)
	g.kubectl(fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kruise-webhook-service-test
  namespace: %s
  labels: {kubernetes.io/service-name: kruise-webhook-service, endpointslice.kubernetes.io/managed-by: test}
addressType: IPv4
endpoints: [{addresses: [%q], conditions: {ready: true}}]
ports: [{name: webhook, port: %d, protocol: TCP}]
`, system, outbound(g.t), webhook), "apply")
	program := g.build("kruise-manager", root, "./examples/kruise-manager")
	cmd := exec.Command(program, "--kubeconfig="+g.Kubeconfig, "--metrics-addr=0",
		fmt.Sprintf("--health-probe-addr=127.0.0.1:%d", health), "--nodeimage-creation-delay=1s",
		"--feature-gates=ImagePullJobGate=true,PodProbeMarkerGate=true")
	cmd.Env = append(os.Environ(), "POD_NAMESPACE="+system, fmt.Sprintf("WEBHOOK_PORT=%d", webhook))
	log, err := os.Create(filepath.Join(g.dir, "manager.log"))
	if err != nil {
		g.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	g.start(cmd)
	g.until("the manager is ready", func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", health), nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
}

// dashboard starts kubectl kruise dashboard.
func (g *ground) dashboard(args ...string) {
	g.t.Helper()
	program := g.build("kubectl-kruise", filepath.Join(root, "kubectl-kruise"), ".")
	cmd := exec.Command(program, append([]string{"dashboard", "-n", "shop", "--cache-dir", g.dir}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+g.Kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	g.start(cmd)
	lines := bufio.NewScanner(out)
	for g.url == "" && lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); strings.HasPrefix(text, "http://127.0.0.1:") {
			g.url = text
		}
	}
	if g.url == "" {
		g.t.Fatal("the dashboard has printed no URL")
	}
}

func (g *ground) build(name, dir, pkg string) string {
	g.t.Helper()
	out := filepath.Join(g.dir, name)
	build := exec.CommandContext(g.t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		g.t.Fatalf("build %s: %v\n%s", name, err, output)
	}
	return out
}

// start starts a process that ends with the test.
func (g *ground) start(cmd *exec.Cmd) {
	g.t.Helper()
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		ended := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer ended.Stop()
		_ = cmd.Wait()
	})
}

func (g *ground) until(what string, done func(context.Context) error) {
	g.t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(g.t.Context(), 100*time.Millisecond, 5*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = done(ctx)
			return last == nil, nil
		}); err != nil {
		g.t.Fatalf("%s: %v", what, last)
	}
}

// retry applies a manifest until the webhooks answer.
func (g *ground) retry(manifest string) {
	g.t.Helper()
	g.until("apply", func(context.Context) error {
		_, err := g.try(manifest, "apply")
		return err
	})
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	address, is := l.Addr().(*net.TCPAddr)
	if !is {
		t.Fatal(l.Addr())
	}
	return address.Port
}

// outbound is an address of this machine that an endpoint can have, which a loopback address cannot.
func outbound(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if ip, is := address.(*net.IPNet); is && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no IPv4 address but loopback, where API servers call no webhook")
	return ""
}
