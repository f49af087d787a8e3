package workloadspread

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
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

// TestRivals: each pod belongs to the WorkloadSpread that adopts the pod first, and the others leave the pod alone.
func TestRivals(t *testing.T) {
	for name, c := range map[string]struct {
		spreads []*subset.Spread
		want    map[string]string
	}{
		"a Deployment and its ReplicaSet": {
			[]*subset.Spread{ofWeb("a"), ofWebV1("b")}, map[string]string{"p-v1": "a", "p-v2": "a"},
		},
		"a ReplicaSet and its Deployment": {
			[]*subset.Spread{ofWebV1("a"), ofWeb("b")}, map[string]string{"p-v1": "a", "p-v2": "b"},
		},
		"one target": {
			[]*subset.Spread{ofWeb("a"), ofWeb("b")}, map[string]string{"p-v1": "a", "p-v2": "a"},
		},
		"one target, and filters": {
			[]*subset.Spread{only("v2", ofWeb("a")), ofWeb("b")}, map[string]string{"p-v1": "b", "p-v2": "a"},
		},
		"another target": {
			[]*subset.Spread{ofWeb("a"), spreadFor("b", "apps/v1", "Deployment", "other")},
			map[string]string{"p-v1": "a", "p-v2": "a"},
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
	c.pass(r, "b")
	c.pass(r, "a")
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
