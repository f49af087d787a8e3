//go:build envtest || nightly

package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/process"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// started is a manager in this process, with ports of its own.
type started struct {
	probes string
	// webhooks is the port of the webhooks.
	webhooks string
	stop     func() error
}

func start(t *testing.T, c *cluster.Cluster, namespace string, flags ...string) *started {
	t.Helper()
	probes, webhooks := freePort(t), freePort(t)
	o, err := options.Parse(append([]string{
		"--metrics-addr=0", "--health-probe-addr=127.0.0.1:" + probes,
		// The API server is shared: what other tests make is not for this manager.
		"--namespace=" + namespace, "--controllers=*,-nodeimage",
	}, flags...), func(name string) string {
		return map[string]string{"POD_NAMESPACE": namespace, "WEBHOOK_PORT": webhooks}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	mgr, err := process.New(ctx, c.Config, o)
	if err != nil {
		t.Fatal(err)
	}
	var ended error
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		ended = mgr.Start(ctx)
	}()
	stop := sync.OnceValue(func() error {
		cancel()
		running.Wait()
		return ended
	})
	t.Cleanup(func() { _ = stop() })
	return &started{probes: "http://127.0.0.1:" + probes, webhooks: webhooks, stop: stop}
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

func (s *started) ask(path string) error {
	response, err := http.Get(s.probes + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

func holder(ctx context.Context, c *cluster.Cluster, namespace string) string {
	var lease coordinationv1.Lease
	if err := c.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "kruise-manager"}, &lease); err != nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// Two replicas: both are ready, one leads, and when it stops the other leads long before the lease would have ended.
//
// The manager also reconciles kinds without a namespace, so it does not share an API server with other tests.
func TestReplicas(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Private: true})
	namespace := c.Namespace(t)
	first := start(t, c, namespace)
	eventually(t, func(ctx context.Context) error {
		if holder(ctx, c, namespace) == "" {
			return errors.New("nobody leads")
		}
		return errors.Join(first.ask("/healthz"), first.ask("/readyz"))
	})
	leader := holder(t.Context(), c, namespace)
	second := start(t, c, namespace)
	eventually(t, func(context.Context) error { return second.ask("/readyz") })
	if got := holder(t.Context(), c, namespace); got != leader {
		t.Errorf("%s leads, and %s had not stopped", got, leader)
	}

	begin := time.Now()
	if err := first.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	eventually(t, func(ctx context.Context) error {
		if got := holder(ctx, c, namespace); got == "" || got == leader {
			return fmt.Errorf("%q leads", got)
		}
		return nil
	})
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the other leads after %s: the lease was not released", took)
	}
	if err := second.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if got := holder(t.Context(), c, namespace); got != "" {
		t.Errorf("%s leads, and all have stopped", got)
	}
}

// The overlay for a takeover keeps pods from being created bare until the manager leads. The manager narrows the entry
// to the pods that something concerns, with its CA, and removes it where it serves none.
func TestPods(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Private: true})
	for _, namespace := range []string{"kruise-system", "kruise-daemon-config"} {
		if _, err := c.Kubectl(t.Context(), "create", "namespace", namespace); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k",
		"../../../config/takeover"); err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "p-"}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main"}}
		return c.Client.Create(ctx, pod, client.DryRunAll)
	}
	eventually(t, func(ctx context.Context) error {
		if err := create(ctx); err == nil || !strings.Contains(err.Error(), "mpod.kb.io") {
			return fmt.Errorf("a pod before the manager leads: %w", err)
		}
		return nil
	})
	read := func(ctx context.Context, name string) (webhooks []admissionregistrationv1.MutatingWebhook) {
		var found admissionregistrationv1.MutatingWebhookConfiguration
		if err := c.Client.Get(ctx, types.NamespacedName{Name: name}, &found); err != nil {
			t.Fatal(err)
		}
		return found.Webhooks
	}
	first := start(t, c, "kruise-system")
	eventually(t, func(ctx context.Context) error {
		all := read(ctx, "kruise-pods-webhook-configuration")
		if len(all) == 0 {
			return errors.New("there is no entry")
		}
		main := read(ctx, "kruise-mutating-webhook-configuration")[0].ClientConfig
		if got := all[0].ClientConfig; all[0].Name != "mpod.kb.io" || got.Service.Name != main.Service.Name ||
			!bytes.Equal(got.CABundle, main.CABundle) {
			return fmt.Errorf("%s is served by %+v", all[0].Name, got)
		}
		if len(all) != 1 || len(all[0].MatchConditions) != 1 {
			return fmt.Errorf("the entry sends all pods: %+v", all)
		}
		return errors.Join(first.ask("/readyz"), create(ctx))
	})
	if err := first.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	start(t, c, "kruise-system", "--feature-gates=PodWebhook=false")
	eventually(t, func(ctx context.Context) error {
		if all := read(ctx, "kruise-pods-webhook-configuration"); len(all) > 0 {
			return fmt.Errorf("%s is there", all[0].Name)
		}
		return nil
	})
}

// Every object of the deployment is one that an API server accepts, without a field that it does not know.
func TestManifests(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Private: true})
	for _, namespace := range []string{"kruise-system", "kruise-daemon-config"} {
		if _, err := c.Kubectl(t.Context(), "create", "namespace", namespace); err != nil {
			t.Fatal(err)
		}
	}
	said, err := c.Kubectl(t.Context(), "apply", "--server-side", "--dry-run=server", "--validate=strict",
		"--force-conflicts", "-k", "../../../config/default")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"deployment.apps/kruise-controller-manager", "service/kruise-webhook-service",
		"poddisruptionbudget.policy/kruise-controller-manager",
		"role.rbac.authorization.k8s.io/kruise-manager", "daemonset.apps/kruise-daemon", "clonesets.apps.kruise.io",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("there is no %s in\n%s", want, said)
		}
	}
}

func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	within(t, time.Minute, check)
}

func within(t *testing.T, limit time.Duration, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, limit, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}
