//go:build envtest

package compat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks"
)

// podGround is an API server, and the webhooks of sets and pods in this process.
type podGround struct {
	*cluster.Cluster
	install *envtest.WebhookInstallOptions
	options ctrl.Options

	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader keeps what the API server tells the client.
func (g *podGround) HandleWarningHeader(_ int, _, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.warnings = append(g.warnings, text)
}

func (g *podGround) warned() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.warnings
	g.warnings = nil
	return all
}

func newPodGround(t *testing.T) *podGround {
	t.Helper()
	o, err := controllers.ManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	o.Metrics = metricsserver.Options{BindAddress: "0"}
	g := &podGround{options: o, install: &envtest.WebhookInstallOptions{}}
	g.Cluster = cluster.Start(t, cluster.Options{
		Private: true, Scheme: o.Scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_sidecarsets.yaml"},
	})
	told := rest.CopyConfig(g.Config)
	told.WarningHandlerWithContext, told.WarningHandler = nil, g
	if g.Client, err = client.New(told, client.Options{Scheme: o.Scheme}); err != nil {
		t.Fatal(err)
	}
	if err := g.install.PrepWithoutInstalling(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.install.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	if err := g.Client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scope.DefaultNamespace}}); err != nil {
		t.Fatal(err)
	}
	g.configure(t)
	g.run(t, func(mgr ctrl.Manager) error {
		return webhooks.AddToManager(mgr, webhooks.Options{
			Reach:        webhooks.Reach{URL: g.url(), CABundle: g.install.LocalServingCAData},
			CoverTimeout: 7 * time.Second, // the machine may be busy
		})
	})
	bad := newSidecarSet("bad", "bad")
	bad.Spec.Selector = nil
	reviewtest.Until(t, "sets are not reviewed", func(ctx context.Context) error {
		if err := g.Client.Create(ctx, bad.DeepCopy(), client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("a bad set: %w", err)
		}
		return nil
	})
	return g
}

func (g *podGround) url() string {
	return fmt.Sprintf("https://%s:%d", g.install.LocalServingHost, g.install.LocalServingPort)
}

// configure installs what is deployed for sets and pods, as it is generated, but for the address.
func (g *podGround) configure(t *testing.T) {
	t.Helper()
	g.blank(t)
	file, err := os.Open("../../config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := utilyaml.NewYAMLOrJSONDecoder(file, 4096)
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, into := range []any{mutating, validating} {
		if err := decoder.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	mutating.Webhooks = slices.DeleteFunc(mutating.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return w.Name != "msidecarset.kb.io"
	})
	validating.Webhooks = slices.DeleteFunc(validating.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return w.Name != "vsidecarset.kb.io"
	})
	if len(mutating.Webhooks) != 1 || len(validating.Webhooks) != 1 {
		t.Fatal("there are no webhooks of sets")
	}
	for _, c := range []*admissionregistrationv1.WebhookClientConfig{
		&mutating.Webhooks[0].ClientConfig, &validating.Webhooks[0].ClientConfig,
	} {
		*c = admissionregistrationv1.WebhookClientConfig{
			URL: ptr.To(g.url() + *c.Service.Path), CABundle: g.install.LocalServingCAData,
		}
	}
	for _, o := range []client.Object{mutating, validating} {
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// run has a manager do its work until the test ends.
func (g *podGround) run(t *testing.T, add func(ctrl.Manager) error) {
	t.Helper()
	o := g.options
	o.WebhookServer = webhook.NewServer(webhook.Options{
		Host: g.install.LocalServingHost, Port: g.install.LocalServingPort, CertDir: g.install.LocalServingCertDir,
	})
	mgr, err := ctrl.NewManager(g.Config, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := add(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	select {
	case <-mgr.Elected():
	case <-t.Context().Done():
		t.Fatal("nobody leads")
	}
}

// lead runs what a leader does about the entries.
func (g *podGround) lead(t *testing.T) {
	t.Helper()
	g.blank(t)
	g.run(t, func(mgr ctrl.Manager) error {
		r, err := podscope.New(mgr.GetClient(), podscope.Options{URL: g.url(), CABundle: g.install.LocalServingCAData})
		if err != nil {
			return err
		}
		return r.SetupWithManager(t.Context(), mgr, controller.Options{})
	})
	reviewtest.Until(t, "the leader writes nothing", func(context.Context) error {
		if len(g.named(t, scope.DefaultConfiguration).Webhooks) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
}
