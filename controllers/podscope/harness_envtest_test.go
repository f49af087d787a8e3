//go:build envtest

package podscope_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
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
	scheme := podbench.Scheme(t)
	c := cluster.Start(t, cluster.Options{
		Private: true, Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_workloadspreads.yaml"},
	})
	limited := limit(t, c)
	run := func(name string, test func(*bench)) {
		t.Run(name, func(t *testing.T) {
			b := &bench{
				Bench: podbench.On(t, c, scheme), cluster: c, hook: scopetest.New(t), events: record.NewFakeRecorder(1000),
			}
			b.Cache, b.Config = cache.Options{}, limited
			t.Cleanup(b.clear)
			test(b)
		})
	}
	run("LateKind", testLateKind) // it installs SidecarSets for the others
	for name, test := range map[string]func(*bench){
		"Latency": testLatency, "Authority": testAuthority, "Malformed": testMalformed, "Missing": testMissing,
		"Lost": testLost, "Namespace": testNamespace, "InForce": testInForce,
	} {
		run(name, test)
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

// bench is what one test works at. Its reconciler has no more rights than the manager.
type bench struct {
	*podbench.Bench

	cluster *cluster.Cluster
	hook    *scopetest.Webhook
	events  *record.FakeRecorder
	writes  int
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
func (b *bench) start(o podscope.Options) {
	b.Helper()
	o.Recorder = b.events
	b.Run(func(mgr ctrl.Manager, _ client.WithWatch) error {
		live, err := client.New(mgr.GetConfig(), client.Options{Scheme: b.Scheme})
		if err != nil {
			return err
		}
		r, err := podscope.New(live, o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{})
	})
}

// written returns how many writes the reconciler has made so far.
func (b *bench) written() int {
	b.writes += len(requests.Without(b.Asked(), "GET "))
	return b.writes
}

// sent is how often pods of a name came to the webhook.
func (b *bench) sent(pod string) int { return b.hook.Sent(scopetest.Call{Name: pod}) }

// overURL are options for the webhook of the test.
func (b *bench) overURL() podscope.Options {
	return podscope.Options{URL: b.hook.URL, CABundle: b.hook.Authority()}
}

// create makes the configuration that is part of a deployment.
func (b *bench) create() {
	b.Helper()
	c := &configuration{ObjectMeta: metav1.ObjectMeta{Name: podscope.DefaultConfiguration}}
	if err := b.Client.Create(b.Context(), c); err != nil {
		b.Fatal(err)
	}
}

// set creates one that selects an app of its own name.
func (b *bench) set(name string) {
	b.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	if err := b.Client.Create(b.Context(), set); err != nil {
		b.Fatal(err)
	}
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
	b.Until(func() error {
		if !so() {
			return errors.New(otherwise)
		}
		return nil
	})
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
