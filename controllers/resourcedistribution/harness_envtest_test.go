//go:build envtest

package resourcedistribution_test

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/resourcedistribution"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// account is that of the manager.
const account = "system:serviceaccount:kruise-system:kruise-manager"

// bench has a control plane of its own: the kind has no namespace.
type bench struct {
	*podbench.Bench

	cluster *cluster.Cluster
}

// newBench has no reconciler yet. The reconciler is the account of the manager with the rights of config/rbac.
func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := podbench.Scheme(t)
	c := cluster.Start(t, cluster.Options{
		Private: true, Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_resourcedistributions.yaml"},
	})
	b := &bench{Bench: podbench.On(t, c, scheme), cluster: c}
	b.Cache = cache.Options{}
	b.Config = rest.CopyConfig(b.Config)
	b.Config.Impersonate = rest.ImpersonationConfig{
		UserName: account, Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	b.namespace("kruise-system", nil)
	b.apply("../../config/rbac")
	return b
}

func (b *bench) apply(directory string) {
	b.Helper()
	if out, err := b.cluster.Kubectl(b.Context(), "apply", "--server-side", "-k", directory); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}

// reconcile starts the reconciler.
func (b *bench) reconcile() {
	b.Helper()
	b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := resourcedistribution.New(c, resourcedistribution.Options{})
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 3})
	})
}

func (b *bench) namespace(name string, labels map[string]string) {
	b.Helper()
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
}

func (b *bench) create(o client.Object) {
	b.Helper()
	if err := b.Client.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// distribute creates or changes a distribution.
func (b *bench) distribute(name, resource, targets string) *distributor {
	b.Helper()
	d := &distributor{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := b.Look(d)
	d.Spec = spec(b, resource, targets)
	if err != nil {
		b.create(d)
	} else if err := b.Client.Update(b.Context(), d); err != nil {
		b.Fatal(err)
	}
	return d
}

// patch changes an object as another writer does.
func (b *bench) patch(o client.Object, body string) {
	b.Helper()
	if err := b.Client.Patch(b.Context(), o, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		b.Fatal(err)
	}
}

func secretIn(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// has waits until a Secret has the user.
func (b *bench) has(namespace, name, user string) *corev1.Secret {
	b.Helper()
	s := secretIn(namespace, name)
	b.Until(func() error {
		if err := b.Look(s); err != nil {
			return err
		}
		if string(s.Data["user"]) != user || len(s.Data) != 1 {
			return fmt.Errorf("%s/%s has %q", namespace, name, s.Data)
		}
		return nil
	})
	return s
}

// settled waits for a status of the present generation.
func (b *bench) settled(name string, succeeded, desired int32) *distributor {
	b.Helper()
	d := &distributor{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Until(func() error {
		if err := b.Look(d); err != nil {
			return err
		}
		if d.Status.ObservedGeneration != d.Generation || d.Status.Succeeded != succeeded || d.Status.Desired != desired {
			return fmt.Errorf("the status is %+v", d.Status)
		}
		return nil
	})
	return d
}

// condition of a type.
func condition(d *distributor, t v1beta1.ResourceDistributionConditionType) v1beta1.ResourceDistributionCondition {
	for i, c := range conditionTypes() {
		if c == t && i < len(d.Status.Conditions) {
			return d.Status.Conditions[i]
		}
	}
	return v1beta1.ResourceDistributionCondition{}
}
