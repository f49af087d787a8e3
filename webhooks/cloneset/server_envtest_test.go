//go:build envtest

package cloneset_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

// ground is an API server of the test's own, with the CRDs and their conversion, and this package's webhooks in the test
// process.
type ground struct {
	*cluster.Cluster
	calls *calls
}

// calls are those of the webhooks to the API server.
type calls struct {
	mu   sync.Mutex
	made map[string]int
}

func (c *calls) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[what]++
}

// of runs what is measured, and gives the calls meanwhile.
func (c *calls) of(what func()) map[string]int {
	c.mu.Lock()
	c.made = map[string]int{}
	c.mu.Unlock()
	what()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

func (c *calls) counting(api client.WithWatch) client.WithWatch {
	return interceptor.NewClient(api, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			c.add("create")
			return w.Create(ctx, obj, opts...)
		},
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			c.add("get")
			return w.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			c.add("list")
			return w.List(ctx, list, opts...)
		},
	})
}

func newGround(t *testing.T, o cloneset.Options) *ground {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, appsv1beta1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	g := &ground{Cluster: cluster.Start(t, cluster.Options{Private: true, Scheme: scheme}), calls: &calls{made: map[string]int{}}}
	install := configurations()
	if err := install.Install(g.Config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := install.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	g.serve(t, install, o)
	url := fmt.Sprintf("https://%s:%d%s", install.LocalServingHost, install.LocalServingPort, conversion.Path)
	crds, err := crd.Both(apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: install.LocalServingCAData})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range crds {
		if c.Spec.Names.Kind == "CloneSet" {
			if _, err := envtest.InstallCRDs(g.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{c}, Scheme: scheme}); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.waitForWebhooks(t)
	return g
}

// configurations of the webhooks, as the manifests of the reference have them.
func configurations() *envtest.WebhookInstallOptions {
	fail, none, both := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, []string{"v1alpha1", "v1beta1"}
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "webhook", Namespace: "default", Path: &path}}
	}
	on := func(operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"apps.kruise.io"}, APIVersions: both, Resources: []string{"clonesets"},
		}}}
	}
	const create, update, remove = admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete
	return &envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionregistrationv1.MutatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "mutating"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "mcloneset.kb.io", Rules: on(create, update), ClientConfig: at(cloneset.MutatePath),
				FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			}},
		}},
		ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "validating"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "vcloneset.kb.io", Rules: on(create, update, remove), ClientConfig: at(cloneset.ValidatePath),
				FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			}},
		}},
	}
}

func (g *ground) serve(t *testing.T, install *envtest.WebhookInstallOptions, o cloneset.Options) {
	t.Helper()
	mgr, err := ctrl.NewManager(g.Config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: install.LocalServingHost, Port: install.LocalServingPort, CertDir: install.LocalServingCertDir,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	live, err := client.NewWithWatch(g.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	webhooks, err := cloneset.New(g.calls.counting(live), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := webhooks.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
	ctx, cancel := context.WithCancel(context.Background()) // deletions after the test need the webhooks
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return mgr.GetWebhookServer().StartedChecker()(&http.Request{}) == nil, nil
	})
	if err != nil {
		t.Fatalf("the webhooks do not start: %v", err)
	}
}

// waitForWebhooks returns when the API server has seen the configurations.
func (g *ground) waitForWebhooks(t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		set := newSet(t, "v1beta1", "default", `{"selector":{"matchLabels":null}}`)
		var err error
		made := g.calls.of(func() { err = g.Client.Create(ctx, set, client.DryRunAll) })
		return made["create"] > 0 && apierrors.IsInvalid(err), nil
	})
	if err != nil {
		t.Fatalf("nobody calls the webhooks: %v", err)
	}
}

// newSet is a CloneSet of one container whose spec is changed by a merge patch.
func newSet(t *testing.T, version, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	set := &unstructured.Unstructured{}
	if err := set.UnmarshalJSON([]byte(fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"CloneSet",
		"metadata":{"generateName":"set-","namespace":%q},"spec":%s}`, version, namespace, spec(t, patch)))); err != nil {
		t.Fatal(err)
	}
	return set
}
