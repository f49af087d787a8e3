//go:build envtest || nightly

package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
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
	probes, webhooks := cluster.FreePort(t), cluster.FreePort(t)
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

// webhooksOf returns the entries of a configuration.
func webhooksOf(t *testing.T, c *cluster.Cluster, name string) []admissionregistrationv1.MutatingWebhook {
	t.Helper()
	var found admissionregistrationv1.MutatingWebhookConfiguration
	if err := c.Client.Get(t.Context(), types.NamespacedName{Name: name}, &found); err != nil {
		t.Fatal(err)
	}
	return found.Webhooks
}

// TestProcess: the overlay for a takeover keeps pods from being created bare until a manager leads. The manager narrows
// the entry to the pods that something concerns, with its CA, and copies a Secret to a new namespace, but not to its
// own. A second replica is ready, and leads when the first one stops, long before the lease would have ended. It serves
// no pods, and removes the entry.
func TestProcess(t *testing.T) {
	at := address(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: scheme})
	for _, namespace := range []string{"kruise-system", "kruise-daemon-config"} {
		if _, err := c.Kubectl(t.Context(), "create", "namespace", namespace); err != nil {
			t.Fatal(err)
		}
	}
	applyAll(t, c, "-k", "../../../config/takeover")
	pod := func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "p-"}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main"}}
		return c.Client.Create(ctx, pod, client.DryRunAll)
	}
	cluster.Eventually(t, func(ctx context.Context) error {
		if err := pod(ctx); err == nil || !strings.Contains(err.Error(), "mpod.kb.io") {
			return fmt.Errorf("a pod before the manager leads: %w", err)
		}
		return nil
	})
	first := start(t, c, "kruise-system", "--feature-gates=ResourceDistributionGate=true",
		"--resourcedistribution-workers=2")
	cluster.Eventually(t, func(ctx context.Context) error {
		all := webhooksOf(t, c, "kruise-pods-webhook-configuration")
		if len(all) != 1 || len(all[0].MatchConditions) != 1 {
			return fmt.Errorf("the entries are %+v", all)
		}
		main := webhooksOf(t, c, "kruise-mutating-webhook-configuration")[0].ClientConfig
		if got := all[0].ClientConfig; all[0].Name != "mpod.kb.io" || got.Service.Name != main.Service.Name ||
			!bytes.Equal(got.CABundle, main.CABundle) {
			return fmt.Errorf("%s is served by %+v", all[0].Name, got)
		}
		return errors.Join(first.ask("/healthz"), publish(ctx, c, "first", at, first), pod(ctx))
	})
	testDistribution(t, c)

	leader := holder(t.Context(), c, "kruise-system")
	second := start(t, c, "kruise-system", "--feature-gates=PodWebhook=false")
	cluster.Eventually(t, func(context.Context) error { return second.ask("/readyz") })
	if got := holder(t.Context(), c, "kruise-system"); leader == "" || got != leader {
		t.Errorf("%s leads, and %q had not stopped", got, leader)
	}
	begin := time.Now()
	if err := first.stop(); err != nil { // while copies are watched
		t.Errorf("it ended with %v", err)
	}
	cluster.Eventually(t, func(ctx context.Context) error {
		if got := holder(ctx, c, "kruise-system"); got == "" || got == leader {
			return fmt.Errorf("%q leads", got)
		}
		return nil
	})
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the other leads after %s: the lease was not released", took)
	}
	cluster.Eventually(t, func(context.Context) error {
		if all := webhooksOf(t, c, "kruise-pods-webhook-configuration"); len(all) > 0 {
			return fmt.Errorf("%s is there", all[0].Name)
		}
		return nil
	})
	if err := second.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if got := holder(t.Context(), c, "kruise-system"); got != "" {
		t.Errorf("%s leads, and all have stopped", got)
	}
}

func testDistribution(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	web := map[string]string{"team": "web"}
	d := &v1beta1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "registry"}}
	d.Spec.Resource.Raw = []byte(
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"registry"},"stringData":{"user":"reader"}}`)
	d.Spec.Targets.NamespaceSelector.MatchLabels = web
	if err := errors.Join(
		c.Client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}},
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"web"}}}`))),
		c.Client.Create(t.Context(), d),
		c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: web}}),
	); err != nil {
		t.Fatal(err)
	}
	secret := types.NamespacedName{Namespace: "shop", Name: "registry"}
	cluster.Eventually(t, func(ctx context.Context) error {
		if err := errors.Join(c.Client.Get(ctx, secret, &corev1.Secret{}),
			c.Client.Get(ctx, types.NamespacedName{Name: "registry"}, d)); err != nil {
			return err
		}
		if d.Status.Succeeded != 1 || d.Status.Desired != 1 {
			return fmt.Errorf("the status is %+v", d.Status)
		}
		return nil
	})
	secret.Namespace = "kruise-system"
	if err := c.Client.Get(t.Context(), secret, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace of the manager has a copy: %v", err)
	}
}
