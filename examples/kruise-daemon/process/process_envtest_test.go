//go:build envtest

package process

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/test/cluster"
)

// account is whom config/daemon gives rights.
const account = "system:serviceaccount:kruise-system:kruise-daemon"

// started is a daemon in this process.
type started struct {
	url  string
	stop func() error
}

func start(t *testing.T, rc *rest.Config, dir string) *started {
	t.Helper()
	port := cluster.FreePort(t)
	o := parse(t, dir, "--addr=127.0.0.1:"+port)
	ctx, cancel := context.WithCancel(t.Context())
	var ended error
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		ended = Run(ctx, rc, o)
	}()
	stop := sync.OnceValue(func() error {
		cancel()
		running.Wait()
		return ended
	})
	t.Cleanup(func() { _ = stop() })
	return &started{url: "http://127.0.0.1:" + port, stop: stop}
}

// ask gives what an endpoint answers.
func (s *started) ask(path string) (code int, body string, err error) {
	response, err := http.Get(s.url + path)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(content)), err
}

// answers wants an endpoint to answer.
func (s *started) answers(path string, code int, body string) error {
	gotCode, got, err := s.ask(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if gotCode != code || !strings.Contains(got, body) {
		return fmt.Errorf("%s: %d %q, want %d %q", path, gotCode, got[:min(len(got), 200)], code, body)
	}
	return nil
}

// as is the administrator's configuration for another program.
func as(c *cluster.Cluster, user string) *rest.Config {
	rc := rest.CopyConfig(c.Config)
	rc.Impersonate = rest.ImpersonationConfig{
		UserName: user, Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	return rc
}

// install installs the kinds, and namespaces.
func install(t *testing.T) *cluster.Cluster {
	t.Helper()
	c := cluster.Start(t, cluster.Options{Private: true, CRDDirs: []string{"../../../config/crd/bases"}})
	for _, name := range []string{"kruise-system", "kruise-daemon-config"} {
		if err := c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestProcess(t *testing.T) {
	log.SetLogger(logr.Discard())
	c := install(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, c *cluster.Cluster)
	}{
		{"without rights", testWithoutRights}, {"health", testHealth}, {"manifests", testManifests}, {"policy", testPolicy},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// A daemon with the rights of config/daemon, which it gets after its start, and whose runtime goes and comes back.
func testHealth(t *testing.T, c *cluster.Cluster) {
	dir := t.TempDir()
	runtime := serve(t, dir, "containerd/containerd.sock")
	d := start(t, as(c, account), dir)
	cluster.Eventually(t, func(context.Context) error { return d.answers("/livez", http.StatusOK, "ok") })
	if err := d.answers("/healthz", http.StatusInternalServerError,
		"InformerSynced failed, err: not synced yet"); err != nil {
		t.Errorf("without rights: %v", err)
	}
	for _, file := range []string{"account.yaml", "role.yaml", "bindings.yaml"} {
		if _, err := c.Kubectl(t.Context(), "apply", "-f", "../../../config/daemon/"+file); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Eventually(t, func(context.Context) error { return d.answers("/healthz", http.StatusOK, "ok") })
	if err := d.answers("/metrics", http.StatusOK, "kruise_daemon_image_pulls_running 0"); err != nil {
		t.Error(err)
	}

	runtime.Stop()
	cluster.Eventually(t, func(context.Context) error {
		return d.answers("/healthz", http.StatusInternalServerError, "check runtimeConnected failed, err: unix://")
	})
	if err := d.answers("/livez", http.StatusOK, "ok"); err != nil {
		t.Errorf("no restart of the daemon brings the runtime back: %v", err)
	}
	runtime.Start()
	cluster.Eventually(t, func(context.Context) error { return d.answers("/healthz", http.StatusOK, "ok") })
	if err := d.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// One that never got to work ends in peace as well.
func testWithoutRights(t *testing.T, c *cluster.Cluster) {
	dir := t.TempDir()
	serve(t, dir, "containerd.sock")
	d := start(t, as(c, "nobody"), dir)
	cluster.Eventually(t, func(context.Context) error { return d.answers("/livez", http.StatusOK, "ok") })
	if err := d.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// Every object of the deployment is one that an API server accepts, without a field that it does not know.
func testManifests(t *testing.T, c *cluster.Cluster) {
	said, err := c.Kubectl(t.Context(), "apply", "--server-side", "--dry-run=server", "--validate=strict",
		"--force-conflicts", "-k", "../../../config/daemon")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"daemonset.apps/kruise-daemon", "namespace/kruise-daemon-config", "serviceaccount/kruise-daemon",
		"role.rbac.authorization.k8s.io/kruise-daemon",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("there is no %s in\n%s", want, said)
		}
	}
}
