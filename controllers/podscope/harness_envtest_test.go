//go:build envtest

package podscope_test

import (
	"bytes"
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/internal/scope/scopetest"
	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

type (
	configuration = admissionregistrationv1.MutatingWebhookConfiguration
	entry         = admissionregistrationv1.MutatingWebhook
)

// Sets and configurations have no namespace, so that the tests have a control plane of their own, and come one by one.
func TestPodScope(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_sidecarsets.yaml"}})
	limited := limit(t, c)
	for name, test := range map[string]func(*bench){
		"Latency": testLatency, "Adversary": testAdversary, "Enforcer": testEnforcer, "Authority": testAuthority, "Off": testOff, "Malformed": testMalformed,
		"Missing": testMissing, "Lost": testLost,
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{T: t, Cluster: c, scheme: scheme, limited: limited, hook: scopetest.New(t), events: record.NewFakeRecorder(1000)}
			t.Cleanup(b.clear)
			test(b)
		})
	}
}

// limit is a user with the rights of the manager, and no others.
func limit(t *testing.T, c *cluster.Cluster) *rest.Config {
	t.Helper()
	data, err := os.ReadFile("../../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(bytes.Split(data, []byte("\n---\n"))[0], &role); err != nil || role.Kind != "ClusterRole" {
		t.Fatalf("%s: %v", role.Kind, err)
	}
	for _, o := range []client.Object{&role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "limited"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "limited"}},
	}} {
		if err := c.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "limited", Groups: []string{"system:authenticated"}}
	return config
}

// bench is what one test works at.
type bench struct {
	*testing.T
	*cluster.Cluster

	scheme  *runtime.Scheme
	limited *rest.Config
	hook    *scopetest.Webhook
	events  *record.FakeRecorder

	mu     sync.Mutex
	writes int
}

// clear leaves nothing to the next test.
func (b *bench) clear() {
	ctx := context.WithoutCancel(b.Context())
	for _, o := range []client.Object{&configuration{}, &v1beta1.SidecarSet{}} {
		if err := b.Client.DeleteAllOf(ctx, o); err != nil {
			b.Error(err)
		}
	}
}

// start runs a reconciler until the test ends. It writes through a client that counts, and has no more rights than the manager.
func (b *bench) start(o podscope.Options) {
	b.Helper()
	o.Recorder = b.events
	mgr, err := ctrl.NewManager(b.limited, ctrl.Options{Scheme: b.scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		b.Fatal(err)
	}
	live, err := client.NewWithWatch(b.limited, client.Options{Scheme: b.scheme})
	if err != nil {
		b.Fatal(err)
	}
	r, err := podscope.New(interceptor.NewClient(live, interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			b.mu.Lock()
			b.writes++
			b.mu.Unlock()
			return w.Patch(ctx, o, p, options...)
		},
	}), o)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.SetupWithManager(b.Context(), mgr, controller.Options{}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
}

func (b *bench) written() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes
}

// sent is how often pods of a name came to the webhook.
func (b *bench) sent(pod string) int { return b.hook.Sent(scopetest.Call{Name: pod}) }

// overURL are options for the webhook of the test.
func (b *bench) overURL() podscope.Options {
	return podscope.Options{URL: b.hook.URL, CABundle: b.hook.Authority()}
}

// create makes the configuration that is part of a deployment.
func (b *bench) create() *configuration {
	b.Helper()
	c := &configuration{ObjectMeta: metav1.ObjectMeta{Name: podscope.DefaultConfiguration}}
	if err := b.Client.Create(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	return c
}

// set creates one that selects an app.
func (b *bench) set(name, app string) *v1beta1.SidecarSet {
	b.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	if err := b.Client.Create(b.Context(), set); err != nil {
		b.Fatal(err)
	}
	return set
}

func (b *bench) read() *configuration {
	b.Helper()
	c := &configuration{}
	if err := b.Client.Get(b.Context(), client.ObjectKey{Name: podscope.DefaultConfiguration}, c); err != nil {
		b.Fatal(err)
	}
	return c
}

// until waits for something to be so.
func (b *bench) until(otherwise string, so func() bool) {
	b.Helper()
	if err := wait.PollUntilContextTimeout(b.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return so(), nil }); err != nil {
		b.Fatalf("%s: %+v", otherwise, b.read().Webhooks)
	}
}

func (b *bench) dryRun(namespace, app string) {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := b.Client.Create(b.Context(), pod, client.DryRunAll); err != nil {
		b.Fatal(err)
	}
}
