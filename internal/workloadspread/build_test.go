package workloadspread_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

const shop = "shop"

// cluster has objects, and counts what is read and written.
type cluster struct {
	testing.TB
	*apiserver.Server

	latency       time.Duration
	writes, reads atomic.Int32
	// fail is asked before each write of a status.
	fail func() error
	// failRead is asked before each live read.
	failRead func() error
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, appsv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return &cluster{TB: t, Server: apiserver.New(scheme, time.Now)}
}

// Get reads, with a latency.
func (c *cluster) Get(ctx context.Context, name client.ObjectKey, into client.Object, o ...client.GetOption) error {
	c.reads.Add(1)
	wait(c.latency)
	if c.failRead != nil {
		if err := c.failRead(); err != nil {
			return err
		}
	}
	return c.Server.Get(ctx, name, into, o...)
}

// Status writes, with a latency.
func (c *cluster) Status() client.SubResourceWriter { return writer{c.Server.Status(), c} }

type writer struct {
	client.SubResourceWriter
	c *cluster
}

func (w writer) Patch(
	ctx context.Context, o client.Object, p client.Patch, options ...client.SubResourcePatchOption,
) error {
	w.c.writes.Add(1)
	wait(w.c.latency)
	if w.c.fail != nil {
		if err := w.c.fail(); err != nil {
			return err
		}
	}
	return w.SubResourceWriter.Patch(ctx, o, p, options...)
}

func wait(d time.Duration) {
	if d > 0 {
		time.Sleep(d) //nolint:forbidigo // the latency of an API server
	}
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{
		appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion, appsv1beta1.GroupVersion,
		{Group: "example.com", Version: "v1"},
	})
	for _, gvk := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		batchv1.SchemeGroupVersion.WithKind("Job"), appsv1beta1.GroupVersion.WithKind("CloneSet"),
	} {
		m.Add(gvk, meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Game", "Match"} {
		m.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	return m
}

// replica is an Allocator with a cache of its own.
func (c *cluster) replica(o workloadspread.Options) (*workloadspread.Allocator, *workloadspread.Index) {
	c.Helper()
	now := o.Now
	if now == nil {
		now = time.Now
	}
	x := workloadspread.NewIndex(now)
	finder := &replicas.Finder{Cached: c.Server, Live: c, Scales: c, Mapper: mapper(), Now: time.Now}
	d, err := workloadspread.New(workloadspread.Lookups{Spreads: x, Client: c, Targets: &workloadspread.Targets{
		Finder: finder, Live: c, Kinds: &workloadspread.Kinds{Live: c, Now: time.Now},
	}}, o)
	if err != nil {
		c.Fatal(err)
	}
	return d, x
}

// put stores an object.
func (c *cluster) put(o client.Object) {
	c.Helper()
	if err := c.Put(o); err != nil {
		c.Fatal(err)
	}
}

// show has an index show what is stored now.
func (c *cluster) show(x *workloadspread.Index, names ...string) {
	c.Helper()
	for _, name := range names {
		raw := &unstructured.Unstructured{}
		raw.SetGroupVersionKind(workloadspread.Kind())
		if err := c.Server.Get(c.Context(), types.NamespacedName{Namespace: shop, Name: name}, raw); err != nil {
			c.Fatal(err)
		}
		if err := x.Put(raw); err != nil {
			c.Fatal(err)
		}
	}
}

// spread is a WorkloadSpread of a target over subsets a, b ...; a negative limit is none.
func spread(name, kind string, limits ...int32) *subset.Spread {
	group := map[string]string{"CloneSet": "apps.kruise.io/v1alpha1", "Job": "batch/v1"}[kind]
	if group == "" {
		group = "apps/v1"
	}
	ws := &subset.Spread{ObjectMeta: metav1.ObjectMeta{
		Namespace: shop, Name: name, UID: types.UID("uid-" + name), Generation: 1,
	}}
	ws.Spec.TargetReference = &appsv1beta1.TargetReference{APIVersion: group, Kind: kind, Name: "web"}
	for i, limit := range limits {
		s := subset.Subset{
			Name:        string(rune('a' + i)),
			Tolerations: []corev1.Toleration{{Key: string(rune('a' + i)), Operator: corev1.TolerationOpExists}},
		}
		if limit >= 0 {
			s.MaxReplicas = ptr.To(intstr.FromInt32(limit))
		}
		ws.Spec.Subsets = append(ws.Spec.Subsets, s)
	}
	return ws
}

// pod is controlled by a workload; without a name it has a generateName.
func pod(name, apiVersion, kind, owner string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: shop, Name: name, GenerateName: "web-", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: apiVersion, Kind: kind, Name: owner, UID: types.UID("uid-" + owner), Controller: ptr.To(true),
		}},
	}}
	return p
}

func cloned(name string) *corev1.Pod {
	return pod(name, "apps.kruise.io/v1beta1", "CloneSet", "web")
}

// subsetOf is the subset that a pod is annotated with.
func subsetOf(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	m, _ := subset.MatchOf(p)
	return m.Subset
}

// stored reads a WorkloadSpread.
func (c *cluster) stored(name string) *subset.Spread {
	c.Helper()
	ws := &subset.Spread{}
	if err := c.Server.Get(c.Context(), types.NamespacedName{Namespace: shop, Name: name}, ws); err != nil {
		c.Fatal(err)
	}
	return ws
}

func (c *cluster) admit(d *workloadspread.Allocator, p *corev1.Pod, uid string) *corev1.Pod {
	c.Helper()
	next, err := d.Admit(c.Context(), types.NamespacedName{Namespace: shop, Name: uid}, p)
	if err != nil {
		c.Fatal(fmt.Errorf("admit %s: %w", p.Name, err))
	}
	return next
}
