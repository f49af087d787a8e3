package workloadspread

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// spreadFor is a WorkloadSpread of a target over one subset, which suits every node.
func spreadFor(name, apiVersion, kind, target string) *subset.Spread {
	ws := &subset.Spread{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Generation: 1,
	}}
	ws.Spec.TargetReference = &appsv1beta1.TargetReference{APIVersion: apiVersion, Kind: kind, Name: target}
	ws.Spec.Subsets = []subset.Subset{{Name: "all"}}
	return ws
}

func ofWeb(name string) *subset.Spread   { return spreadFor(name, "apps/v1", "Deployment", "web") }
func ofWebV1(name string) *subset.Spread { return spreadFor(name, "apps/v1", "ReplicaSet", "web-v1") }

func only(role string, ws *subset.Spread) *subset.Spread {
	ws.Spec.TargetFilter = &appsv1beta1.TargetFilter{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": role}},
	}
	return ws
}

func raw(t *testing.T, ws *subset.Spread) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ws)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(workloadspread.Kind())
	return o
}

func owner(apiVersion, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: ptr.To(true),
	}}
}

// shop has a Deployment with two ReplicaSets, each with a pod on node-a, and the WorkloadSpreads.
func shop(t *testing.T, all ...*subset.Spread) (*cluster, *Reconciler) {
	t.Helper()
	c, r := newCluster(t)
	c.put(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", Generation: 1}})
	c.put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}})
	for _, version := range []string{"v1", "v2"} {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace:       "shop",
			Name:            "web-" + version,
			UID:             types.UID("uid-web-" + version),
			Generation:      1,
			OwnerReferences: owner("apps/v1", "Deployment", "web"),
			Annotations:     map[string]string{"deployment.kubernetes.io/revision": version[1:]},
		}}
		pod := podOf("p-"+version, noon())
		run(pod, "a", noon())
		pod.Labels = map[string]string{"pod-template-hash": version, "role": version}
		pod.OwnerReferences = owner("apps/v1", "ReplicaSet", set.Name)
		c.put(set, pod)
	}
	for _, ws := range all {
		c.put(ws)
		if err := r.index.Put(raw(t, ws)); err != nil {
			t.Fatal(err)
		}
	}
	return c, r
}

// pass runs one pass of a WorkloadSpread, and returns how many pods it patches.
func (c *cluster) pass(r *Reconciler, name string) int {
	c.Helper()
	c.show(r)
	if _, err := r.Reconcile(c.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}); err != nil {
		c.Fatal(err)
	}
	n := 0
	for _, request := range c.Requests() {
		if strings.HasPrefix(request, "PATCH pods/") {
			n++
		}
	}
	return n
}

// holders returns the WorkloadSpread that the annotation of each pod names.
func (c *cluster) holders() map[string]string {
	c.Helper()
	var list corev1.PodList
	if err := c.List(c.Context(), &list); err != nil {
		c.Fatal(err)
	}
	c.Requests()
	all := map[string]string{}
	for i := range list.Items {
		m, _ := subset.MatchOf(&list.Items[i])
		all[list.Items[i].Name] = m.Name
	}
	return all
}

// TestRivals: each pod belongs to the WorkloadSpread that admission finds first, and the others leave the pod alone.
func TestRivals(t *testing.T) {
	for name, c := range map[string]struct {
		spreads []*subset.Spread
		want    map[string]string
	}{
		"a ReplicaSet is nearer than its Deployment": {
			[]*subset.Spread{ofWeb("a"), ofWebV1("b")}, map[string]string{"p-v1": "b", "p-v2": "a"},
		},
		"nearer counts more than the name": {
			[]*subset.Spread{ofWebV1("a"), ofWeb("b")}, map[string]string{"p-v1": "a", "p-v2": "b"},
		},
		"one target: the first by name": {
			[]*subset.Spread{ofWeb("a"), ofWeb("b")}, map[string]string{"p-v1": "a", "p-v2": "a"},
		},
		"one target: the first whose filter selects": {
			[]*subset.Spread{only("v2", ofWeb("a")), ofWeb("b")}, map[string]string{"p-v1": "b", "p-v2": "a"},
		},
		"nearer, but its filter does not select": {
			[]*subset.Spread{ofWeb("a"), only("v2", ofWebV1("b"))}, map[string]string{"p-v1": "a", "p-v2": "a"},
		},
		"another target": {
			[]*subset.Spread{ofWeb("a"), spreadFor("b", "apps/v1", "Deployment", "other")},
			map[string]string{"p-v1": "a", "p-v2": "a"},
		},
		"three": {
			[]*subset.Spread{ofWeb("a"), ofWebV1("b"), ofWebV1("c")}, map[string]string{"p-v1": "b", "p-v2": "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			have, r := shop(t, c.spreads...)
			for range 2 {
				for _, ws := range c.spreads {
					have.pass(r, ws.Name)
				}
			}
			if diff := cmp.Diff(c.want, have.holders()); diff != "" {
				t.Errorf("holders (-want +got):\n%s", diff)
			}
			for _, ws := range c.spreads {
				if n := have.pass(r, ws.Name); n > 0 {
					t.Errorf("%s patches %d pods again", ws.Name, n)
				}
			}
		})
	}
}

// TestRivalIsGone: pods of a WorkloadSpread that is deleted are adopted, also while its annotation is left.
func TestRivalIsGone(t *testing.T) {
	c, r := shop(t, ofWeb("a"), ofWebV1("b"))
	c.pass(r, "a")
	c.pass(r, "b")
	if err := c.Delete(t.Context(), ofWebV1("b")); err != nil {
		t.Fatal(err)
	}
	r.index.Delete(client.ObjectKey{Namespace: "shop", Name: "b"})
	c.Requests()
	if n := c.pass(r, "a"); n != 1 {
		t.Errorf("%d patches, want one", n)
	}
	if diff := cmp.Diff(map[string]string{"p-v1": "a", "p-v2": "a"}, c.holders()); diff != "" {
		t.Errorf("holders (-want +got):\n%s", diff)
	}
}

// TestRivalOfFurtherKind: a controller between a pod and a target of a further kind has a WorkloadSpread of its own.
func TestRivalOfFurtherKind(t *testing.T) {
	game := spreadFor("game", "example.com/v1", "Game", "chess")
	for name, c := range map[string]struct {
		rival  *subset.Spread
		owner  []metav1.OwnerReference
		before string
		want   string
	}{
		"the controller of the pod": {ofWebV1("match"), owner("apps/v1", "ReplicaSet", "web-v1"), "", "match"},
		"the controller above":      {ofWeb("match"), owner("apps/v1", "ReplicaSet", "web-v1"), "", "match"},
		"the same target": {
			rival: spreadFor("match", "example.com/v1", "Game", "chess"),
			owner: owner("example.com/v1", "Match", "m"),
			want:  "game",
		},
		"unknown, and admission chose": {
			rival:  spreadFor("match", "example.com/v1", "Round", "r"),
			owner:  owner("example.com/v1", "Match", "m"),
			before: "match",
			want:   "match",
		},
		"of a workload that is not its chain": {
			rival:  spreadFor("match", "apps/v1", "Deployment", "other"),
			owner:  owner("example.com/v1", "Match", "m"),
			before: "match",
			want:   "game",
		},
	} {
		t.Run(name, func(t *testing.T) {
			have, r := shop(t, game.DeepCopy(), c.rival)
			have.selector = "role=v1"
			have.put(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1",
				"kind":       "Game",
				"metadata":   map[string]any{"namespace": "shop", "name": "chess", "uid": "uid-chess"},
			}}, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: kruise.DefaultNamespace, Name: kruise.ConfigurationName},
				Data: map[string]string{
					kruise.WorkloadSpreadWhiteListKey: `{"workloads":[{"Group":"example.com","Kind":"Game"}]}`,
				},
			})
			pod := &corev1.Pod{}
			if err := have.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "p-v1"}, pod); err != nil {
				t.Fatal(err)
			}
			pod.OwnerReferences = c.owner
			if c.before != "" {
				pod.Annotations = map[string]string{
					kruise.MatchedWorkloadSpreadKey: subset.Text(subset.Match{Name: c.before, Subset: "all"}),
				}
			}
			have.put(pod)
			for range 2 {
				have.pass(r, "game")
				have.pass(r, "match")
			}
			if got := have.holders()["p-v1"]; got != c.want {
				t.Errorf("the pod is of %q, want %q", got, c.want)
			}
			if n := have.pass(r, "game") + have.pass(r, "match"); n > 0 {
				t.Errorf("%d patches again", n)
			}
		})
	}
}

// TestRivalEvents: a WorkloadSpread that takes pods of another one, or leaves them, requeues the other one.
func TestRivalEvents(t *testing.T) {
	later := only("v2", ofWebV1("b"))
	later.Generation = 2
	created := func(ws *subset.Spread) func(context.Context, handler.EventHandler, queue) {
		o := raw(t, ws)
		return func(ctx context.Context, h handler.EventHandler, q queue) {
			h.Create(ctx, event.CreateEvent{Object: o}, q)
		}
	}
	was, is := raw(t, ofWebV1("b")), raw(t, later)
	for name, do := range map[string]func(context.Context, handler.EventHandler, queue){
		"created":                     created(ofWebV1("b")),
		"created for the same target": created(ofWeb("b")),
		"changed": func(ctx context.Context, h handler.EventHandler, q queue) {
			h.Update(ctx, event.UpdateEvent{ObjectOld: was, ObjectNew: is}, q)
		},
		"deleted": func(ctx context.Context, h handler.EventHandler, q queue) {
			h.Create(ctx, event.CreateEvent{Object: was}, q)
			for range q.Len() {
				request, _ := q.Get()
				q.Done(request)
			}
			h.Delete(ctx, event.DeleteEvent{Object: was}, q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			have, r := shop(t, ofWeb("a"))
			have.pass(r, "a")
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			defer q.ShutDown()
			do(t.Context(), r.spreadEvents(), q)
			if q.Len() != 2 {
				t.Errorf("%d requests, want b and a", q.Len())
			}
		})
	}
}
