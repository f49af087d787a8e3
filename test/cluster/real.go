package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/image"
	"github.com/kruisekit/kruisekit/test/cluster/internal/flock"
	"github.com/kruisekit/kruisekit/test/cluster/nodes"
)

// forTests is a file in the state of a cluster of real nodes that a test has started, and that tests stop again. One
// that a user has started by hand stays.
const forTests = "for-tests"

// stopping bounds the end of a cluster of real nodes.
const stopping = 2 * time.Minute

// attach uses the cluster of real nodes that is up, or starts it.
func attach(ctx context.Context, t testing.TB, programs binaries.Cache) (string, error) {
	t.Helper()
	config, err := nodes.OfMachine(programs)
	if err != nil {
		return "", err
	}
	if err := config.Check(); err != nil {
		return "", err
	}
	// While it is held, no other test process stops the cluster.
	use, err := flock.Shared(ctx, useLock(config.Dir))
	if err != nil {
		return "", fmt.Errorf("wait for other tests to stop the cluster: %w", err)
	}
	t.Cleanup(use.Release)
	started, err := config.Up(ctx)
	if err != nil {
		return "", err
	}
	if started {
		if err := os.WriteFile(filepath.Join(config.Dir, forTests), nil, 0o600); err != nil {
			return "", fmt.Errorf("mark the cluster as one for tests: %w", err)
		}
	}
	return config.Kubeconfig(), sameVersion(programs, config.Kubeconfig())
}

// sameVersion returns an error where a cluster that was up before has another version of Kubernetes than the programs.
func sameVersion(programs binaries.Cache, kubeconfig string) error {
	want, err := programs.KubernetesVersion()
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	is, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("read the version of the cluster: %w", err)
	}
	if is.GitVersion != want {
		return fmt.Errorf("the cluster that is up has Kubernetes %s, not %s: stop it, see test/cluster/README.md",
			is.GitVersion, want)
	}
	return nil
}

func useLock(dir string) string { return filepath.Clean(dir) + ".use" }

// Main runs the tests of a package and then stops the cluster of real nodes, if tests have started it and none uses it
// any more. A package with tests on real nodes calls it, for otherwise their cluster stays up:
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), stopping)
	defer cancel()
	if err := stopUnused(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "stop the cluster of real nodes:", err)
		return max(code, 1)
	}
	return code
}

// MainAtOnce is Main for tests that wait more than they compute: so many of them run at once. What controller-runtime
// has to say is dropped.
//
//	func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }
func MainAtOnce(m *testing.M, tests int) int {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		fmt.Fprintln(os.Stderr, "run tests at once:", err)
		return 1
	}
	log.SetLogger(logr.Discard())
	return Main(m)
}

func stopUnused(ctx context.Context) error {
	programs, err := binaries.Open()
	if err != nil {
		return err
	}
	config, err := nodes.OfMachine(programs)
	if err != nil {
		return nil // without its programs no test has started it
	}
	if _, err := os.Stat(filepath.Join(config.Dir, forTests)); err != nil {
		return nil // there is none, or it is not ours
	}
	unused, err := flock.TryExclusive(useLock(config.Dir))
	if errors.Is(err, flock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unused.Release()
	return config.Down(ctx)
}

// Push makes an image that all nodes can pull, and that no registry outside has. For Real alone.
func (c *Cluster) Push(t testing.TB, s image.Spec) image.Image {
	t.Helper()
	config := c.real(t)
	pusher, err := config.Pusher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := pusher.Push(t.Context(), s)
	if err != nil {
		t.Fatalf("push %s: %v", s.Name, err)
	}
	return pushed
}

func (c *Cluster) real(t testing.TB) nodes.Config {
	t.Helper()
	if c.Level != Real {
		t.Fatalf("a cluster of level %s has no real nodes", c.Level)
	}
	programs, err := binaries.Open()
	if err != nil {
		t.Fatal(err)
	}
	config, err := nodes.OfMachine(programs)
	if err != nil {
		t.Fatal(err)
	}
	return config
}
