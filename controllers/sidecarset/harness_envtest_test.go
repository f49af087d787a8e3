//go:build envtest

package sidecarset_test

import (
	"context"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/standin"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace with sets of its own.
type bench struct {
	*podbench.Bench
	user
}

// start runs a test with others at the same time.
func start(t *testing.T, o sidecarset.Options) *bench {
	t.Helper()
	t.Parallel()
	b := newBench(t)
	b.reconcile(o, same)
	return b
}

func same(c client.WithWatch) client.Client { return c }

// newBench has no reconciler yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := newGround(t)
	b.Beside(func(mgr ctrl.Manager) error {
		kubelet := &standin.Kubelet{
			Client: mgr.GetClient(), Namespace: b.Namespace, Node: "node-1",
			Broken:  func(image string) bool { return strings.HasSuffix(image, ":broken") },
			Unready: func(pod *corev1.Pod) bool { _, is := pod.Annotations[unready]; return is },
		}
		return kubelet.SetupWithManager(mgr)
	})
	return b
}

// newGround has nothing that runs pods, either.
func newGround(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		Bench: podbench.New(t, cluster.Options{CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_sidecarsets.yaml"}}),
	}
	b.user = user{t: t, client: b.Client, namespace: b.Namespace, until: b.Until}
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("SidecarSet"))
	b.Cache.ByObject = map[client.Object]cache.ByObject{set: {
		Label: labels.SelectorFromSet(labels.Set{owner: b.Namespace}),
	}}
	b.Cleanup(func() { // the test's context is over
		if err := b.Client.DeleteAllOf(context.WithoutCancel(t.Context()), &v1beta1.SidecarSet{},
			client.MatchingLabels{owner: b.Namespace}); err != nil {
			t.Error(err)
		}
	})
	return b
}

// reconcile starts a reconciler of the test's sets, and gives what stops it. It stops with the test at the latest.
func (b *bench) reconcile(o sidecarset.Options, wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	o.Namespace = b.Namespace
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := sidecarset.New(wrap(c), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
}

// events of a reason, each as often as it was counted.
func (b *bench) events(reason string) int {
	b.Helper()
	var list corev1.EventList
	if err := b.Client.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	n := 0
	for i := range list.Items {
		e := &list.Items[i]
		about := e.InvolvedObject
		if e.Reason == reason && e.Source.Component == "sidecarset-controller" &&
			(about.Namespace == b.Namespace || strings.HasPrefix(about.Name, b.Namespace)) {
			n += int(max(e.Count, 1))
		}
	}
	return n
}
