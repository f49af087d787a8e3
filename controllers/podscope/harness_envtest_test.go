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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/rig/scopetest"
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
	c := cluster.Start(t, cluster.Options{
		Private: true, Scheme: scheme, CRDDirs: []string{
			"../../config/crd/bases/apps.kruise.io_sidecarsets.yaml",
			"../../config/crd/bases/apps.kruise.io_workloadspreads.yaml",
		},
	})
	limited := limit(t, c)
	kinds := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	crds, err := client.New(c.Config, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*bench){
		"Latency": testLatency, "Adversary": testAdversary, "Enforcer": testEnforcer, "Authority": testAuthority,
		"Off": testOff, "Malformed": testMalformed,
		"Missing": testMissing, "Lost": testLost, "Replicas": testReplicas, "LateKind": testLateKind,
		"Namespace": testNamespace,
		"InForce":   testInForce,
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{
				T:       t,
				Cluster: c,
				scheme:  scheme,
				limited: limited,
				crds:    crds,
				hook:    scopetest.New(t),
				events:  record.NewFakeRecorder(1000),
			}
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
		ObjectMeta: metav1.ObjectMeta{Name: "limited"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "limited"}},
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
	crds    client.Client
	hook    *scopetest.Webhook
	events  *record.FakeRecorder

	mu     sync.Mutex
	writes int
	// by are the writes by replica.
	by map[int]int
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

// start runs a reconciler until the test ends.
func (b *bench) start(o podscope.Options) { b.replica(0, o, ctrl.Options{}) }

// replica runs one of several reconcilers until it is stopped, or until the test ends. It writes through a client that
// counts, and has no more rights than the manager.
func (b *bench) replica(number int, o podscope.Options, of ctrl.Options) (mgr ctrl.Manager, stop func()) {
	b.Helper()
	o.Recorder = b.events
	of.Scheme, of.Metrics, of.HealthProbeBindAddress = b.scheme, server.Options{BindAddress: "0"}, "0"
	mgr, err := ctrl.NewManager(b.limited, of)
	if err != nil {
		b.Fatal(err)
	}
	count := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.by == nil {
			b.by = map[int]int{}
		}
		b.writes++
		b.by[number]++
	}
	live, err := client.NewWithWatch(b.limited, client.Options{Scheme: b.scheme})
	if err != nil {
		b.Fatal(err)
	}
	r, err := podscope.New(interceptor.NewClient(live, interceptor.Funcs{
		Patch: func(
			ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption,
		) error {
			count()
			return w.Patch(ctx, o, p, options...)
		},
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.CreateOption) error {
			count()
			return w.Create(ctx, o, options...)
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
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(stop)
	return mgr, stop
}

// writer returns the replica that has written so far; -1 if there are several or none.
func (b *bench) writer() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.by) != 1 {
		return -1
	}
	for number := range b.by {
		return number
	}
	return -1
}

// leading are the options of a replica.
func (b *bench) leading(namespace string) ctrl.Options {
	return ctrl.Options{
		LeaderElection:                true,
		LeaderElectionID:              "podscope",
		LeaderElectionNamespace:       namespace,
		LeaderElectionConfig:          b.Config,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(15 * time.Second),
		RenewDeadline:                 ptr.To(10 * time.Second),
		RetryPeriod:                   ptr.To(200 * time.Millisecond),
	}
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
	if err := wait.PollUntilContextTimeout(b.Context(), 5*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return so(), nil }); err != nil {
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

// uninstall removes the kind of sets, and returns it.
func (b *bench) uninstall() *apiextensionsv1.CustomResourceDefinition {
	b.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := b.crds.Get(b.Context(), client.ObjectKey{Name: "sidecarsets.apps.kruise.io"}, crd); err != nil {
		b.Fatal(err)
	}
	if err := b.crds.Delete(b.Context(), crd); err != nil {
		b.Fatal(err)
	}
	b.until("sets are served", func() bool {
		return apierrors.IsNotFound(b.crds.Get(b.Context(), client.ObjectKeyFromObject(crd), crd.DeepCopy())) &&
			b.Client.List(b.Context(), &v1beta1.SidecarSetList{}) != nil
	})
	b.Cleanup(func() { b.install(crd) })
	return crd
}

// install installs the kind, unless it is installed.
func (b *bench) install(crd *apiextensionsv1.CustomResourceDefinition) {
	b.Helper()
	crd = crd.DeepCopy()
	crd.ResourceVersion, crd.UID, crd.Status = "", "", apiextensionsv1.CustomResourceDefinitionStatus{}
	ctx := context.WithoutCancel(b.Context())
	if err := b.crds.Create(ctx, crd); err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatal(err)
	}
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			return b.Client.List(ctx, &v1beta1.SidecarSetList{}) == nil, nil
		}); err != nil {
		b.Fatal("sets are not served")
	}
}
