//go:build envtest

package pod_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// ground is an API server with the webhook in this process.
type ground struct {
	*cluster.Cluster
	install *envtest.WebhookInstallOptions
	scheme  *runtime.Scheme
	config  *admissionregistrationv1.MutatingWebhookConfiguration
	stop    func()
	// options of the webhook, from the next start on.
	options pod.Options
	// follows has the manager of the webhook compete for a lease, from the next start on.
	follows bool
	webhook *pod.Webhook

	mu       sync.Mutex
	calls    int
	warnings []string
}

// HandleWarningHeader keeps what the API server tells the client.
func (g *ground) HandleWarningHeader(_ int, _, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.warnings = append(g.warnings, text)
}

// took gives the number of calls and the warnings since it was asked last.
func (g *ground) took() (int, []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls, warnings := g.calls, g.warnings
	g.calls, g.warnings = 0, nil
	return calls, warnings
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{scheme: runtime.NewScheme(), install: &envtest.WebhookInstallOptions{}}
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, appsv1alpha1.AddToScheme, appsv1beta1.AddToScheme,
	} {
		if err := add(g.scheme); err != nil {
			t.Fatal(err)
		}
	}
	g.Cluster = cluster.Start(t, cluster.Options{Private: true, Scheme: g.scheme, CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_sidecarsets.yaml",
		"../../config/crd/bases/apps.kruise.io_podprobemarkers.yaml",
		"../../config/crd/bases/apps.kruise.io_persistentpodstates.yaml",
	}})
	if err := g.install.PrepWithoutInstalling(); err != nil {
		t.Fatal(err)
	}
	told := rest.CopyConfig(g.Config)
	told.WarningHandlerWithContext, told.WarningHandler = nil, g
	var err error
	if g.Client, err = client.New(told, client.Options{Scheme: g.scheme}); err != nil {
		t.Fatal(err)
	}
	g.config = &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "pods"}}
	for _, o := range []client.Object{
		g.config, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pod.DefaultNamespace}},
	} {
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	g.options = pod.Options{Spreads: patches{}, Probes: pod.ProbeOptions{Serverless: true}}
	g.serve(t)
	t.Cleanup(func() {
		g.stop()
		if err := g.install.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// serve runs the webhook in a manager.
func (g *ground) serve(t *testing.T) {
	t.Helper()
	server0 := webhook.NewServer(webhook.Options{
		Host: g.install.LocalServingHost, Port: g.install.LocalServingPort, CertDir: g.install.LocalServingCertDir,
	})
	o := ctrl.Options{
		Scheme: g.scheme, Metrics: server.Options{BindAddress: "0"}, WebhookServer: &counting{Server: server0, ground: g},
	}
	if g.follows {
		o = g.elected(o)
	}
	mgr, err := ctrl.NewManager(g.Config, o)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := pod.FromManager(mgr, g.options)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pod.New(steps, g.options)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	g.webhook = w
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	g.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	g.until(t, "the webhook does not start", func(context.Context) error {
		return mgr.GetWebhookServer().StartedChecker()(&http.Request{})
	})
}

// counting is a server whose calls are counted.
type counting struct {
	webhook.Server
	ground *ground
}

func (c *counting) Register(path string, hook http.Handler) {
	c.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.ground.mu.Lock()
		c.ground.calls++
		c.ground.mu.Unlock()
		hook.ServeHTTP(w, r)
	}))
}

func (*ground) until(t *testing.T, otherwise string, so func(context.Context) error) {
	t.Helper()
	var last error
	if wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = so(ctx)
			return last == nil, nil
		}) != nil {
		t.Fatalf("%s: %v", otherwise, last)
	}
}

// concerned are the steps that pods are sent for, besides that of sets.
type concerned struct {
	Owned, All, Launch bool
	More               []scope.Contribution
}

func (c concerned) contributions(t *testing.T, sets []*appsv1beta1.SidecarSet) []scope.Contribution {
	t.Helper()
	all := append(c.More, scope.Sidecars().Contribute(untyped(t, sets...)))
	if c.Launch {
		all = append(all, scope.Launch().Contribute(nil))
	}
	if c.Owned {
		all = append(all, scope.Readiness(c.All).Contribute(nil))
	}
	return all
}

// untyped returns objects as the sources of a scope read them.
func untyped[T any](t *testing.T, objects ...T) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	return all
}

// send has the API server send the pods of these contributions alone.
func (g *ground) send(t *testing.T, all ...scope.Contribution) {
	t.Helper()
	url := fmt.Sprintf("https://%s:%d%s", g.install.LocalServingHost, g.install.LocalServingPort, pod.Path)
	g.config.Webhooks = scope.Plan(scope.Input{
		Namespace: pod.DefaultNamespace, Contributions: all,
		Client: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: g.install.LocalServingCAData},
	}).Entries
	if err := g.Client.Update(t.Context(), g.config); err != nil {
		t.Fatal(err)
	}
}

// have installs sets in place of those that were there, and waits until both the API server and the webhook go by them.
func (g *ground) have(t *testing.T, in concerned, sets ...*appsv1beta1.SidecarSet) {
	t.Helper()
	if err := g.Client.DeleteAllOf(t.Context(), &appsv1beta1.SidecarSet{}); err != nil {
		t.Fatal(err)
	}
	mark := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	mark = strings.ReplaceAll(mark[:min(len(mark), 60)], "_", "-")
	probe := newSet(t, "zz-probe",
		fmt.Sprintf(`{selector: {matchLabels: {probe: %q}}, containers: [{name: probe, image: p}]}`, mark))
	for _, set := range append(sets, probe) {
		set.UID, set.Generation = "", 0
		status := set.Status
		if err := g.Client.Create(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		set.Status = status
		if err := g.Client.Status().Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	g.send(t, in.contributions(t, append(sets, probe))...)
	g.until(t, "the sets are not in force", func(ctx context.Context) error {
		p := newPod(t, "default", `{metadata: {name: probe}, spec: {containers: [{name: main, image: m}]}}`)
		p.Labels = map[string]string{"probe": mark}
		if err := g.Client.Create(ctx, p, client.DryRunAll); err != nil {
			return err
		}
		if len(p.Spec.Containers) != 2 {
			return fmt.Errorf("%d containers", len(p.Spec.Containers))
		}
		return nil
	})
	g.took()
}

func newPod(t *testing.T, namespace, text string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	p.Namespace = namespace
	return p
}
