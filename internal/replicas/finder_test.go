package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/pub"
)

var errBroken = errors.New("the connection broke")

// cluster has the metadata and the scales of workloads, by kind and name, and counts what is read.
type cluster struct {
	client.Client

	objects map[string]*metav1.PartialObjectMetadata
	// scales without an entry do not exist.
	scales map[string]int64
	// refusals of a read, by the same keys with "scale/" before those of scales.
	refusals     map[string]error
	gets, scaled int
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.gets++
	kind := into.GetObjectKind().GroupVersionKind().Kind + "/" + key.Name
	if err := c.refusals[kind]; err != nil {
		return err
	}
	have := c.objects[kind]
	if have == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	have.DeepCopyInto(into.(*metav1.PartialObjectMetadata))
	return nil
}

func (c *cluster) SubResource(string) client.SubResourceClient { return scales{cluster: c} }

type scales struct {
	client.SubResourceClient
	*cluster
}

func (s scales) Get(_ context.Context, of, into client.Object, _ ...client.SubResourceGetOption) error {
	s.scaled++
	kind := of.GetObjectKind().GroupVersionKind().Kind + "/" + of.GetName()
	if err := s.refusals["scale/"+kind]; err != nil {
		return err
	}
	n, ok := s.scales[kind]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, of.GetName())
	}
	scale := into.(*unstructured.Unstructured)
	scale.SetUID("of-the-scale")
	return errors.Join(
		unstructured.SetNestedField(scale.Object, n, "spec", "replicas"),
		unstructured.SetNestedField(scale.Object, "app=web", "status", "selector"),
	)
}

func object(uid types.UID, change ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: uid, Generation: 1,
	}}
	for _, c := range change {
		c(o)
	}
	return o
}

func named(group, kind string) replicas.Workload {
	return replicas.Workload{Namespace: "shop", Target: pub.Target{Group: group, Kind: kind, Name: "web"}}
}

// newFinder has Deployments and ReplicaSets in its cache. Shops and Nodes are served, too.
func newFinder(c *cluster, now func() time.Time) *replicas.Finder {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.com", Version: "v1"}, {Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	f := &replicas.Finder{Cached: c, Live: c, Scales: c, Mapper: mapper, Now: now}
	f.Watch(replicas.Deployments(), apps.WithKind("Deployment"))
	f.Watch(replicas.ReplicaSets(), apps.WithKind("ReplicaSet"))
	return f
}

func noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

func TestFind(t *testing.T) {
	terminating := func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = ptr.To(metav1.NewTime(noon())) }
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "web", nil)
	shop := named("example.com", "Shop")
	other := shop
	other.UID = "2"
	cases := map[string]struct {
		why      string
		of       replicas.Workload
		object   *metav1.PartialObjectMetadata
		refusals map[string]error
		scaled   bool
		want     pub.Workload
		watched  bool
		fails    bool
	}{
		"watched": {
			why:     "its scale is read",
			of:      named("apps", "Deployment"),
			object:  object("1"),
			scaled:  true,
			want:    pub.Workload{UID: "1", Replicas: 3},
			watched: true,
		},
		"watched, gone": {
			why:     "nothing is wanted",
			of:      named("apps", "Deployment"),
			scaled:  true,
			want:    pub.Workload{Gone: true},
			watched: true,
		},
		"watched, terminating": {
			why:     "nothing is wanted any more",
			of:      named("apps", "Deployment"),
			object:  object("1", terminating),
			scaled:  true,
			want:    pub.Workload{Gone: true},
			watched: true,
		},
		"unwatched": {
			why: "it is read live", of: shop, object: object("1"), scaled: true, want: pub.Workload{UID: "1", Replicas: 3},
		},
		"unwatched, without scale": {
			why: "its replicas cannot be known", of: shop, object: object("1"), want: pub.Workload{UID: "1", Unknown: true},
		},
		"unwatched, gone": {"nothing is wanted", shop, nil, nil, true, pub.Workload{Gone: true}, false, false},
		"another one of the name": {
			why:    "the one that is meant is gone",
			of:     other,
			object: object("1"),
			scaled: true,
			want:   pub.Workload{UID: "2", Gone: true},
		},
		"metadata forbidden": {
			why:      "the scale has the UID",
			of:       shop,
			object:   object("1"),
			refusals: map[string]error{"Shop/web": forbidden},
			scaled:   true,
			want:     pub.Workload{UID: "of-the-scale", Replicas: 3},
		},
		"scale forbidden": {
			why:      "its replicas cannot be known",
			of:       shop,
			object:   object("1"),
			refusals: map[string]error{"scale/Shop/web": forbidden},
			scaled:   true,
			want:     pub.Workload{Unknown: true},
		},
		"not served": {
			why:    "its replicas cannot be known",
			of:     named("example.com", "Mall"),
			object: object("1"),
			scaled: true,
			want:   pub.Workload{Unknown: true},
		},
		"not namespaced": {
			why: "nothing is read", of: named("", "Node"), object: object("1"), scaled: true, want: pub.Workload{Unknown: true},
		},
		"broken": {
			why:      "the read is repeated",
			of:       shop,
			object:   object("1"),
			refusals: map[string]error{"scale/Shop/web": errBroken},
			scaled:   true,
			want:     pub.Workload{},
			fails:    true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kind := c.of.Kind + "/web"
			have := &cluster{
				refusals: c.refusals, scales: map[string]int64{}, objects: map[string]*metav1.PartialObjectMetadata{kind: c.object},
			}
			if c.scaled {
				have.scales[kind] = 3
			}
			got, err := newFinder(have, noon).Find(t.Context(), c.of)
			if (err != nil) != c.fails {
				t.Fatalf("%s: %v", c.why, err)
			}
			if got.Workload != c.want || !c.fails && got.Unwatched == c.watched {
				t.Errorf("%s: %+v, want %+v", c.why, got, c.want)
			}
		})
	}
}

// A scale is read once for each generation where events report changes, else once a minute.
func TestReads(t *testing.T) {
	now := noon()
	c := &cluster{
		objects: map[string]*metav1.PartialObjectMetadata{"Deployment/web": object("1"), "Shop/web": object("2")},
		scales:  map[string]int64{"Deployment/web": 3, "Shop/web": 3},
	}
	f := newFinder(c, func() time.Time { return now })
	reads := func(of replicas.Workload) int {
		t.Helper()
		before := c.scaled
		for range 10 {
			if is, err := f.Find(t.Context(), of); err != nil || is.Replicas != 3 {
				t.Fatal(is, err)
			}
		}
		return c.scaled - before
	}
	deployment, shop := named("apps", "Deployment"), named("example.com", "Shop")
	for _, step := range []struct {
		why    string
		of     replicas.Workload
		change func()
		want   int
	}{
		{"the first time", deployment, func() {}, 1},
		{"the same generation", deployment, func() { now = now.Add(time.Hour) }, 0},
		{"another generation", deployment, func() { c.objects["Deployment/web"].Generation = 2 }, 1},
		{"the first time, without events", shop, func() {}, 1},
		{"within a minute", shop, func() { now = now.Add(59 * time.Second) }, 0},
		{"after a minute", shop, func() { now = now.Add(time.Second) }, 1},
	} {
		step.change()
		if got := reads(step.of); got != step.want {
			t.Errorf("%s: the scale is read %d times, want %d", step.why, got, step.want)
		}
	}
}

func TestTop(t *testing.T) {
	owner := func(apiVersion, kind string) func(*metav1.PartialObjectMetadata) {
		return func(o *metav1.PartialObjectMetadata) {
			o.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: apiVersion, Kind: kind, Name: "top", UID: "9", Controller: ptr.To(true),
			}}
		}
	}
	for name, c := range map[string]struct {
		why  string
		of   string
		have *metav1.PartialObjectMetadata
		want string
	}{
		"a ReplicaSet of a Deployment": {
			why:  "the Deployment is scaled",
			of:   "ReplicaSet",
			have: object("1", owner("apps/v1", "Deployment")),
			want: "Deployment",
		},
		"a ReplicaSet alone": {"it is scaled itself", "ReplicaSet", object("1"), "ReplicaSet"},
		"a ReplicaSet of another kind": {
			why:  "it is scaled itself, as in the reference",
			of:   "ReplicaSet",
			have: object("1", owner("example.com/v1", "Shop")),
			want: "ReplicaSet",
		},
		"a ReplicaSet that is gone": {"nothing leads further", "ReplicaSet", nil, "ReplicaSet"},
		"another kind": {
			why:  "it is scaled itself",
			of:   "StatefulSet",
			have: object("1", owner("apps/v1", "Deployment")),
			want: "StatefulSet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			have := &cluster{objects: map[string]*metav1.PartialObjectMetadata{c.of + "/web": c.have}}
			top, err := newFinder(have, noon).Top(t.Context(), named("apps", c.of))
			if err != nil || top.Kind != c.want {
				t.Errorf("%s: %+v, %v", c.why, top, err)
			}
		})
	}
}

// One namespace cannot have more than its share of reads, and takes none from another.
func TestShareOfANamespace(t *testing.T) {
	now := noon()
	c := &cluster{objects: map[string]*metav1.PartialObjectMetadata{}, scales: map[string]int64{}}
	f := newFinder(c, func() time.Time { return now })
	find := func(namespace string, n int) (reads, unknown int) {
		t.Helper()
		before := c.gets
		for i := range n {
			of := named("example.com", "Shop")
			of.Namespace, of.Name = namespace, fmt.Sprint("web-", i)
			is, err := f.Find(t.Context(), of)
			if err != nil || !is.Unwatched {
				t.Fatal(is, err)
			}
			if is.Unknown {
				unknown++
			}
		}
		return c.gets - before, unknown
	}
	for _, step := range []struct {
		why            string
		namespace      string
		n              int
		after          time.Duration
		reads, unknown int
	}{
		{"the first hundred are read", "attacker", 150, 0, replicas.MaxUnwatched, 50},
		{"another namespace has its own", "shop", 10, 0, 10, 0},
		{"no more within the minute", "attacker", 150, 59 * time.Second, 0, 50},
		{"again after a minute", "attacker", 150, time.Second, replicas.MaxUnwatched, 50},
	} {
		now = now.Add(step.after)
		if reads, unknown := find(step.namespace, step.n); reads != step.reads || unknown != step.unknown {
			t.Errorf("%s: %d reads, %d unknown", step.why, reads, unknown)
		}
	}
}
