package podstates_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
)

func raw(t testing.TB, s *podstate.State) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// TestIndex: who finds which objects, after changes. Both refer to the same StatefulSet of different versions.
func TestIndex(t *testing.T) {
	state := func(namespace, name, apiVersion string, nodes ...string) *podstate.State {
		s := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		s.Spec.TargetReference = v1beta1.TargetReference{APIVersion: apiVersion, Kind: "StatefulSet", Name: "db"}
		s.Status.PodStates = map[string]v1beta1.PodState{}
		for i, node := range nodes {
			s.Status.PodStates[fmt.Sprintf("db-%d", i)] = v1beta1.PodState{NodeName: node}
		}
		return s
	}
	owner := func(apiVersion string) *metav1.OwnerReference {
		return &metav1.OwnerReference{APIVersion: apiVersion, Kind: "StatefulSet", Name: "db"}
	}
	terminating := state("shop", "a", "apps/v1", "n1")
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	missing := state("shop", "b", "apps/v1beta2", "n2", "gone")
	missing.Status.PodStates["db-1"] = v1beta1.PodState{NodeName: "gone", MissingSince: terminating.DeletionTimestamp}
	broken := raw(t, state("shop", "b", "apps/v1"))
	broken.Object["spec"] = "broken"
	index := podstates.NewIndex()
	for _, step := range []struct {
		why string
		put *unstructured.Unstructured
		// want are the first of the target, those on n1 and on n2, and those that miss a node.
		want string
	}{
		{"one of another namespace is another one", raw(t, state("cart", "b", "apps/v1", "n1")), " [cart/b] [] []"},
		{"any version is of the target", raw(t, missing), "b [cart/b] [shop/b] [shop/b]"},
		{"the first by name counts", raw(t, state("shop", "a", "apps/v1", "n1")), "a [cart/b shop/a] [shop/b] [shop/b]"},
		{"one that terminates steers no pod", raw(t, terminating), "b [cart/b shop/a] [shop/b] [shop/b]"},
		{"one without a group has no target", raw(t, state("shop", "a", "a/b/c")), "b [cart/b] [shop/b] [shop/b]"},
		{"a node is found", raw(t, state("shop", "b", "apps/v1", "n2")), "b [cart/b] [shop/b] []"},
		{"another group is another target", raw(t, state("shop", "b", "apps.kruise.io/v1beta1")), " [cart/b] [] []"},
		{"one that cannot be decoded is left out", broken, " [cart/b] [] []"},
		{"one that is gone is left out", nil, " [] [] []"},
	} {
		if step.put == nil {
			index.Delete(types.NamespacedName{Namespace: "cart", Name: "b"})
		} else if err := index.Put(step.put); (err != nil) != (step.put == broken) {
			t.Fatal(err)
		}
		first := ""
		if s := index.First("shop", owner("apps/v1")); s != nil {
			first = s.Name
		}
		sorted := func(all []types.NamespacedName) []types.NamespacedName {
			return slices.SortedFunc(slices.Values(all), func(a, b types.NamespacedName) int {
				return strings.Compare(a.String(), b.String())
			})
		}
		got := fmt.Sprint(first, " ", sorted(index.On("n1")), " ", sorted(index.On("n2")), " ", sorted(index.Missing()))
		if got != step.want {
			t.Errorf("%s: got %q, want %q", step.why, got, step.want)
		}
	}
	if index.First("shop", owner("a/b/c")) != nil {
		t.Error("an owner without a group has an object")
	}
}

// TestWorkloadOf: what each kind says about its ordinals, and what cannot be read.
func TestWorkloadOf(t *testing.T) {
	for sentence, c := range map[string]struct {
		group, spec string
		start       bool
		// want is "unknown", or the ordinals.
		want string
	}{
		"a native set has a start": {group: "apps", spec: `{"replicas":2,"ordinals":{"start":3}}`, want: "[3 4]"},
		"an advanced one has no start": {
			group: "apps.kruise.io", spec: `{"replicas":2,"ordinals":{"start":3}}`, want: "[0 1]",
		},
		"but with the option it has": {
			group: "apps.kruise.io", spec: `{"replicas":2,"ordinals":{"start":3}}`, start: true, want: "[3 4]",
		},
		"ordinals are around reserved": {
			group: "apps.kruise.io", spec: `{"replicas":2,"reserveOrdinals":[0,"2-4"]}`, want: "[1 5]",
		},
		"a range has an order": {
			group: "apps.kruise.io", spec: `{"replicas":2,"reserveOrdinals":["4-2"]}`, want: "unknown",
		},
		"an item is no boolean": {
			group: "apps.kruise.io", spec: `{"replicas":2,"reserveOrdinals":[true]}`, want: "unknown",
		},
		"an item has 32 bits": {
			group: "apps.kruise.io", spec: `{"replicas":2,"reserveOrdinals":[1099511627776]}`, want: "unknown",
		},
		"reserved ordinals are a list": {
			group: "apps.kruise.io", spec: `{"replicas":2,"reserveOrdinals":"x"}`, want: "unknown",
		},
		"a custom kind has replicas": {
			group: "example.com", spec: `{"replicas":1,"template":{"a":[1]}}`, want: "[0]",
		},
		"a custom kind may have none": {group: "example.com", spec: `{}`, want: "unknown"},
		"replicas are no text":        {group: "example.com", spec: `{"replicas":"3"}`, want: "unknown"},
		"replicas are not negative":   {group: "example.com", spec: `{"replicas":-3}`, want: "unknown"},
	} {
		t.Run(sentence, func(t *testing.T) {
			workload := &unstructured.Unstructured{}
			text := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"StatefulSet","spec":%s}`, c.group, c.spec)
			if err := workload.UnmarshalJSON([]byte(text)); err != nil {
				t.Fatal(err)
			}
			w := podstates.WorkloadOf(workload, c.start)
			got := fmt.Sprint(slices.Collect(w.Ordinals.All()))
			if w.Unknown {
				got = "unknown"
			}
			if got != c.want || w.Gone {
				t.Errorf("got %+v", w)
			}
		})
	}
}
