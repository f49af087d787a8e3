//go:build envtest

package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/rig/critest"
)

// recorded is a part that only says how it was set up.
type recorded struct {
	workers *[]int
	err     error
}

func (r recorded) SetupWithManager(_ context.Context, _ ctrl.Manager, o controller.Options) error {
	*r.workers = append(*r.workers, o.MaxConcurrentReconciles)
	return r.err
}

func start(t *testing.T) *cluster.Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return cluster.Start(t, cluster.Options{Scheme: scheme, CRDDirs: []string{
		"../config/crd/bases/apps.kruise.io_nodeimages.yaml",
		"../config/crd/bases/apps.kruise.io_containerrecreaterequests.yaml",
		"../config/crd/bases/apps.kruise.io_nodepodprobes.yaml",
	}})
}

func node(t *testing.T, name string) Node {
	t.Helper()
	dir := t.TempDir()
	critest.Serve(t, filepath.Join(dir, "containerd.sock"))
	runtimes, err := cri.Detect(t.Context(), cri.Search{Root: dir}, cri.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runtimes.Close() })
	return Node{Name: name, Runtimes: runtimes}
}

func newManager(t *testing.T, c *cluster.Cluster, name string, o Options) ctrl.Manager {
	t.Helper()
	mo, err := ManagerOptions(name, o)
	if err != nil {
		t.Fatal(err)
	}
	mo.Metrics = metricsserver.Options{BindAddress: "0"}
	mgr, err := ctrl.NewManager(c.Config, mo)
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

func TestAdd(t *testing.T) {
	c, n := start(t), node(t, "node-a")
	mgr := newManager(t, c, n.Name, Options{})
	var workers []int
	one := func(name string, object client.Object, err error) part {
		return part{name: name, object: object, make: func(ctrl.Manager, Node, Options) (reconciler, error) {
			return recorded{&workers, err}, nil
		}}
	}
	toaster := stored.Untyped(schema.GroupVersionKind{Group: "kitchen.example.com", Version: "v1", Kind: "Toaster"})
	pods := one("pods", &corev1.Pod{}, nil)
	all := []part{one("in", &appsv1beta1.NodeImage{}, nil), one("missing", toaster, nil), pods}
	o := Options{Controller: func(name string) controller.Options {
		return controller.Options{MaxConcurrentReconciles: len(name)}
	}}

	if err := add(t.Context(), mgr, target{n, o, all}); err != nil {
		t.Fatal(err)
	}
	all[2].skip = "pods are not watched"
	if err := add(t.Context(), mgr, target{n, o, all}); err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 4, 2}; !slices.Equal(workers, want) {
		t.Errorf("set up with %v, want %v: those whose kinds are installed, and pods once", workers, want)
	}
	broken := errors.New("broken")
	if err := add(t.Context(), mgr, target{n, o, []part{one("in", &corev1.Pod{}, broken)}}); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of the part", err)
	}
	for _, of := range []Node{{}, {Name: "node-a"}, {Name: "node-a", Runtimes: &cri.Runtimes{}}, {Runtimes: n.Runtimes}} {
		if err := AddToManager(t.Context(), mgr, of, Options{}); err == nil {
			t.Errorf("%+v is accepted", of)
		}
	}
}

// What the cache has belongs to the node, and what it does not have is not asked for in passing.
func TestCache(t *testing.T) {
	c := start(t)
	namespace := c.Namespace(t)
	here, there := namespace+"-here", namespace+"-there" // others use the same control plane
	n := node(t, here)
	for _, on := range []string{here, there} {
		request := func(name, active string) *appsv1beta1.ContainerRecreateRequest {
			return &appsv1beta1.ContainerRecreateRequest{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + on, Labels: map[string]string{
					appsv1beta1.ContainerRecreateRequestNodeNameKey: on, appsv1beta1.ContainerRecreateRequestActiveKey: active,
				}},
				Spec: appsv1beta1.ContainerRecreateRequestSpec{
					PodName: "web", Containers: []appsv1beta1.ContainerRecreateRequestContainer{{Name: "web"}},
				},
			}
		}
		for _, object := range []client.Object{
			&appsv1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: on}}, request("active-", "true"), request("ended-", ""),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: on}, Spec: corev1.PodSpec{
				NodeName: on, Containers: []corev1.Container{{Name: "web", Image: "web", Args: []string{"x"}}},
			}},
		} {
			if err := c.Client.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Client.Delete(context.Background(), object) })
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}}
	if err := c.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	mgr := newManager(t, c, n.Name, Options{})
	requests := stored.Untyped(appsv1beta1.GroupVersion.WithKind("ContainerRecreateRequest"))
	all := []part{
		{object: &appsv1beta1.NodeImage{}, check: "nodeImage"},
		{object: requests, check: "crr"},
		{object: &corev1.Pod{}, check: "pod"},
	}
	checked, err := checks(t.Context(), mgr, target{n, Options{}, all})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nodeImage", "crr", "pod"} {
		if err := checked[name](nil); !errors.Is(err, errNotSynced) {
			t.Errorf("before the start: %s: %v", name, err)
		}
	}
	run(t, mgr)
	for name, check := range checked {
		eventually(t, func(context.Context) error {
			if err := check(nil); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}

	var images appsv1beta1.NodeImageList
	var pods corev1.PodList
	cached := mgr.GetCache()
	if err := errors.Join(cached.List(t.Context(), &images), cached.List(t.Context(), &pods)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range images.Items {
		got = append(got, images.Items[i].Name)
	}
	for i := range pods.Items {
		got = append(got, pods.Items[i].Name)
		if len(pods.Items[i].Spec.Containers[0].Args) != 0 || pods.Items[i].ManagedFields != nil {
			t.Errorf("a pod is cached in full: %+v", pods.Items[i])
		}
	}
	if diff := cmp.Diff([]string{here, here}, got); diff != "" {
		t.Errorf("cached (-want +got):\n%s", diff)
	}
	for name, want := range map[string]bool{"active-" + here: true, "active-" + there: false, "ended-" + here: false} {
		if err := cached.Get(t.Context(),
			client.ObjectKey{Namespace: namespace, Name: name}, requests.DeepCopy()); (err == nil) != want {
			t.Errorf("%s is cached: %v, want %t", name, err, want)
		}
	}
	if err := mgr.GetClient().Get(t.Context(), client.ObjectKeyFromObject(secret), &corev1.Secret{}); err != nil {
		t.Errorf("a secret is not read live: %v", err)
	}
	var missing *cache.ErrResourceNotCached
	if err := mgr.GetClient().List(t.Context(), &corev1.NodeList{}); !errors.As(err, &missing) {
		t.Errorf("nodes: %v, want no informer", err)
	}
}

func TestRuntimeCheck(t *testing.T) {
	dir := t.TempDir()
	served := critest.Serve(t, filepath.Join(dir, "containerd.sock"))
	runtimes, err := cri.Detect(t.Context(), cri.Search{Root: dir}, cri.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runtimes.Close() })
	check := connected(runtimes)
	if err := check(nil); err != nil {
		t.Error(err)
	}
	served.Stop()
	eventually(t, func(context.Context) error {
		if err := check(nil); !errors.Is(err, errNotConnected) || !strings.Contains(err.Error(), "containerd.sock") {
			return fmt.Errorf("without a runtime: %w", errors.Join(errors.New("want another error"), err))
		}
		return nil
	})
	served.Start()
	eventually(t, func(context.Context) error { return check(nil) })
}

func run(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
}

func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}
