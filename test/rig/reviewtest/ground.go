// Package reviewtest puts admission webhooks before an API server, for their tests: as the generated manifests have
// them, under their names and with all that these say about them.
package reviewtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// Ground is an API server with the CRDs of some kinds in both versions, and webhooks in the test process.
type Ground struct {
	*cluster.Cluster
	// Calls of the webhooks to the API server.
	Calls *Calls

	install *envtest.WebhookInstallOptions
	bad     *unstructured.Unstructured
	stop    func(t *testing.T)
}

// Setup registers webhooks, and the conversion at /convert. What they do with the client is counted.
type Setup func(mgr ctrl.Manager, api client.Client) error

// Input of Start.
type Input struct {
	// Resources whose CRDs and webhooks are installed.
	Resources []string
	// BuiltIn are resources whose webhooks are installed, and which need no CRD.
	BuiltIn []string
	// Webhooks are the names of those that are installed; empty for all.
	Webhooks []string
	Setup    Setup
	// Bad is an object that only the webhooks reject, with 400, 403 or 422. Nil where the webhooks judge no creation.
	Bad *unstructured.Unstructured
}

// Start returns when the API server asks the webhooks. All ends with the test.
func Start(t *testing.T, in Input) *Ground {
	t.Helper()
	g := &Ground{
		Cluster: cluster.Start(t, cluster.Options{Private: true}), Calls: &Calls{},
		install: configurations(t, in), bad: in.Bad, stop: func(*testing.T) {},
	}
	if err := g.install.Install(g.Config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.stop(t)
		if err := g.install.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	g.serve(t, in.Setup)
	url := fmt.Sprintf("https://%s:%d/convert", g.install.LocalServingHost, g.install.LocalServingPort)
	g.installCRDs(t, in.Resources, apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: g.install.LocalServingCAData})
	g.untilAsked(t)
	return g
}

// untilAsked waits until the API server asks the webhooks.
func (g *Ground) untilAsked(t *testing.T) {
	t.Helper()
	if g.bad == nil {
		return
	}
	Until(t, "the API server does not ask the webhooks", func(ctx context.Context) error {
		err := g.Client.Create(ctx, g.bad.DeepCopy(), client.DryRunAll)
		switch {
		case apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			return nil
		case err == nil:
			return errors.New("the bad object is accepted")
		}
		return err
	})
}

// Serve runs webhooks instead of those that were there.
func (g *Ground) Serve(t *testing.T, setup Setup) {
	t.Helper()
	g.stop(t)
	g.serve(t, setup)
	g.untilAsked(t)
}

func (g *Ground) serve(t *testing.T, setup Setup) {
	t.Helper()
	mgr, err := ctrl.NewManager(g.Config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: g.install.LocalServingHost, Port: g.install.LocalServingPort, CertDir: g.install.LocalServingCertDir,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	live, err := client.NewWithWatch(g.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr, g.Calls.counting(live)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // deletions after a test need the webhooks
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	g.stop = func(t *testing.T) {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	}
	Until(t, "the webhooks do not start", func(context.Context) error {
		return mgr.GetWebhookServer().StartedChecker()(&http.Request{})
	})
}

// Stop ends the webhooks. Their configurations stay.
func (g *Ground) Stop(t *testing.T) {
	t.Helper()
	g.stop(t)
	g.stop = func(*testing.T) {}
}

// Withdraw takes the configurations of all webhooks away.
func (g *Ground) Withdraw(t *testing.T) {
	t.Helper()
	const all = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
	if out, err := g.Kubectl(t.Context(), "delete", all, "--all"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (g *Ground) installCRDs(t *testing.T, resources []string, conversion apiextensionsv1.WebhookClientConfig) {
	t.Helper()
	all, err := crd.Both(conversion)
	if err != nil {
		t.Fatal(err)
	}
	var wanted []*apiextensionsv1.CustomResourceDefinition
	for _, c := range all {
		for _, r := range resources {
			if c.Spec.Names.Plural == r {
				wanted = append(wanted, c)
			}
		}
	}
	if len(wanted) != len(resources) {
		t.Fatalf("%d CRDs for %v", len(wanted), resources)
	}
	if _, err := envtest.InstallCRDs(g.Config, envtest.CRDInstallOptions{CRDs: wanted}); err != nil {
		t.Fatal(err)
	}
}

// Until waits for a minute until there is no error.
func Until(t *testing.T, otherwise string, check func(context.Context) error) {
	t.Helper()
	var last error
	again := func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, again)
	if err != nil {
		t.Fatalf("%s: %v", otherwise, last)
	}
}
