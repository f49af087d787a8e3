//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// TestDeployment shows first what holds on a bare cluster. Then it deploys config/default once for all tests that need
// it, with two replicas of the manager: alone with the gates of the default and two more, where another
// implementation has left CloneSets behind, and later with daemons and with every gate on.
func TestDeployment(t *testing.T) {
	programs := build(t)
	c := cluster.Start(t, cluster.Options{Level: cluster.Real, Scheme: newScheme(t)})
	waitForRemoval(t, c)
	left := leaveBehind(t, c)
	var manager, daemon image.Image
	t.Run("bare", func(t *testing.T) {
		testBare(t, c, programs)
		t.Run("push", func(t *testing.T) {
			t.Parallel()
			manager, daemon = programs.push(t, c, "kruise-manager"), programs.push(t, c, "kruise-daemon")
		})
	})
	if daemon.Name == "" { // -run selects others, as where one of them runs once more
		manager, daemon = programs.push(t, c, "kruise-manager"), programs.push(t, c, "kruise-daemon")
	}
	for _, r := range left {
		r.bequeath(t)
	}
	m := deploy(t, c, overlay(t, []string{
		"--feature-gates=ResourcesDeletionProtection=true,PodUnavailableBudgetUpdateGate=true",
	}, noDaemon, nil, manager), theManager)
	t.Run("manager", func(t *testing.T) { m.testManager(t, left) })

	arguments := []string{
		"--feature-gates=AllAlpha=true,AllBeta=true",
		"--nodeimage-creation-delay=1s",
	}
	m.apply(t, overlay(t, arguments, fullDisk, []string{"../../config/pulljobs", "../../config/resourcedistribution"},
		manager, daemon), theManager, theDaemon)
	t.Run("manager and daemons", m.testAll)
}

// testAll is what the manager and the daemons of three nodes do together: they inject and update sidecars, pull images
// ahead of need, and restart containers.
func (m *deployed) testAll(t *testing.T) {
	eventually(t, func(ctx context.Context) error {
		var list v1beta1.NodeImageList
		if err := m.Client.List(ctx, &list); err != nil || len(list.Items) != 3 {
			return fmt.Errorf("%d NodeImages, %w", len(list.Items), err)
		}
		return nil
	})
	t.Run("at the same time", func(t *testing.T) {
		// These wait longest, and so start first.
		t.Run("Deployments in place", func(t *testing.T) { t.Parallel(); m.testDeployments(t) })
		t.Run("budget", func(t *testing.T) { t.Parallel(); m.testBudget(t) })
		for name, test := range map[string]func(*testing.T){
			"pull/an image": m.testPull, "pull/cut off": m.testPullCutOff, "pull/cancelled": m.testPullCancelled,
			"restart of containers": m.testRecreate, "env of a label": m.testEnvOfLabel,
			"sidecar/hot": m.testSidecarHot, "launch by priority": m.testLaunch, "probes": m.testProbes,
			"sidecar of a job":  m.testJob,
			"document of nodes": m.testNodeDocument, "document of probes": m.testProbeDocument,
			"document of sidecars": m.testSidecarDocument,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
		}
	})
	t.Run("a hostile tenant", m.testHostileTenant)
	t.Run("two nodes lose something", func(t *testing.T) {
		t.Run("the runtime crashes", func(t *testing.T) { t.Parallel(); m.testRuntimeCrashes(t, 1) })
		t.Run("the daemon is killed", func(t *testing.T) { t.Parallel(); m.testDaemonKilled(t, 2) })
	})
	t.Run("a node restarts", m.testNodeRestarts)
	t.Run("nothing refused", m.testNothingRefused)
}

// deployed is the manager in the cluster.
type deployed struct{ *cluster.Cluster }

// programs are those of examples that a test runs.
type programs struct {
	dir    string
	built  chan struct{}
	failed error
}

// build compiles manager and daemon as releases are, and an operator as one on the floor of go.mod is, while the
// cluster of the test starts.
func build(t *testing.T) *programs {
	t.Helper()
	p := &programs{dir: t.TempDir(), built: make(chan struct{})}
	compile := func(arguments ...string) error {
		arguments = append([]string{"build", "-tags=grpcnotrace", "-trimpath", "-ldflags=-s -w", "-o", p.dir}, arguments...)
		command := exec.CommandContext(t.Context(), "go", arguments...)
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, out)
		}
		return nil
	}
	go func() {
		defer close(p.built)
		p.failed = errors.Join(
			compile("-modfile=../../programs.mod", "../../examples/kruise-manager", "../../examples/kruise-daemon"),
			compile("../../examples/embed"))
	}()
	t.Cleanup(func() { <-p.built })
	return p
}

// program returns the path of a program, once all are built.
func (p *programs) program(t *testing.T, name string) string {
	t.Helper()
	if <-p.built; p.failed != nil {
		t.Fatal(p.failed)
	}
	return filepath.Join(p.dir, name)
}

// push makes an image of a program.
func (p *programs) push(t *testing.T, c *cluster.Cluster, name string) image.Image {
	t.Helper()
	content, err := os.ReadFile(p.program(t, name))
	if err != nil {
		t.Fatal(err)
	}
	spec := image.Program(name, content)
	spec.Name = "e2e/" + name + ":dev"
	return c.Push(t, spec)
}

// deploy applies a kustomization, and waits until its workloads run. They go with the test.
func deploy(t *testing.T, c *cluster.Cluster, kustomization string, workloads ...string) *deployed {
	t.Helper()
	m := &deployed{Cluster: c}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		// The next test process waits until all is gone, see waitForRemoval; at the end of a level no test needs to.
		if _, err := c.Kubectl(ctx, "delete", "--ignore-not-found", "--wait=false",
			"-k", "../../config/default"); err != nil {
			t.Errorf("remove what was deployed: %v", err)
		}
	})
	m.apply(t, kustomization, workloads...)
	return m
}

// apply changes what is deployed, and waits until its workloads run.
func (m *deployed) apply(t *testing.T, kustomization string, workloads ...string) {
	t.Helper()
	begin := time.Now()
	if _, err := m.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", kustomization); err != nil {
		t.Fatal(err)
	}
	applied := time.Now()
	for _, workload := range workloads {
		if _, err := m.Kubectl(t.Context(), "rollout", "status", "-n", system, workload, "--timeout=2m"); err != nil {
			said, _ := m.Kubectl(t.Context(), "logs", "-n", system, "--prefix", workload)
			t.Fatalf("%v\n%s", err, said)
		}
	}
	t.Logf("applied in %s, rolled out in %s",
		applied.Sub(begin).Round(time.Second/10), time.Since(applied).Round(time.Second/10))
}

// waitForRemoval waits until what an earlier test process removes is gone.
func waitForRemoval(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	var namespace corev1.Namespace
	err := c.Client.Get(t.Context(), client.ObjectKey{Name: system}, &namespace)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil || namespace.DeletionTimestamp == nil {
		return
	}
	if _, err := c.Kubectl(t.Context(), "delete", "--ignore-not-found", "-k", "../../config/default"); err != nil {
		t.Fatal(err)
	}
}

const (
	theManager = "deployment/kruise-controller-manager"
	theDaemon  = "daemonset/kruise-daemon"
	// fullDisk has daemons pull as long as the disk of the machine has room. No test depends on the free space.
	fullDisk = `
- target: {kind: DaemonSet, name: kruise-daemon}
  patch: '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--image-pull-min-free-percent=1"}]'`
	// noDaemon leaves daemons out, who would write to pods that a manager is to leave alone.
	noDaemon = `
- target: {kind: DaemonSet, name: kruise-daemon}
  patch: '{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kruise-daemon"}, "$patch": "delete"}'`
)

// overlay is config/default and more, with images by digest and arguments of the manager.
func overlay(t *testing.T, arguments []string, patches string, more []string, programs ...image.Image) string {
	t.Helper()
	dir := t.TempDir()
	var bases, images []string
	for _, base := range append([]string{"../../config/default"}, more...) {
		base, err := filepath.Abs(base)
		if err != nil {
			t.Fatal(err)
		}
		if base, err = filepath.Rel(dir, base); err != nil {
			t.Fatal(err)
		}
		bases = append(bases, base)
	}
	for _, made := range programs {
		name, _, _ := strings.Cut(made.Name, ":")
		images = append(images, fmt.Sprintf("{name: %s, newName: %q, digest: %q}", filepath.Base(name), name, made.Digest))
	}
	var added []string
	for _, argument := range arguments {
		added = append(added,
			fmt.Sprintf(`{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": %q}`, argument))
	}
	text := fmt.Sprintf(`
resources: [%s]
images: [%s]
patches:
- target: {kind: Deployment, name: kruise-controller-manager}
  patch: '[%s]'%s
`, strings.Join(bases, ", "), strings.Join(images, ", "), strings.Join(added, ", "), patches)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
