package podstates_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// TestIndex compares the index with a walk over all objects, after random changes.
func TestIndex(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	index, all := podstates.NewIndex(), map[types.NamespacedName]*podstate.State{}
	for i := range 5_000 {
		s := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: pick("a", "b"), Name: pick("x", "y", "z")}}
		name := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
		if random.IntN(4) == 0 {
			index.Delete(name)
			delete(all, name)
		} else {
			s.Spec.TargetReference = v1beta1.TargetReference{
				APIVersion: pick("apps/v1", "apps/v1beta2", "apps.kruise.io/v1beta1", "a/b/c"),
				Kind:       "StatefulSet",
				Name:       pick("db", "web"),
			}
			if random.IntN(5) == 0 {
				s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			s.Status.PodStates = map[string]v1beta1.PodState{}
			for range random.IntN(3) {
				r := v1beta1.PodState{NodeName: pick("n1", "n2")}
				if random.IntN(3) == 0 {
					r.MissingSince = &metav1.Time{Time: time.Unix(1, 0)}
				}
				s.Status.PodStates[pick("0", "1", "2")] = r
			}
			object := raw(t, s)
			if random.IntN(10) == 0 {
				object.Object["spec"] = "broken"
				if index.Put(object) == nil {
					t.Fatal("a broken spec is no error")
				}
				delete(all, name)
			} else if err := index.Put(object); err != nil {
				t.Fatal(err)
			} else {
				all[name] = s
			}
		}
		compare(t, index, all)
		if t.Failed() {
			t.Fatalf("seed %d, step %d", seed, i)
		}
	}
}

func compare(t *testing.T, index *podstates.Index, all map[types.NamespacedName]*podstate.State) {
	t.Helper()
	for _, namespace := range []string{"a", "b"} {
		for _, owner := range []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"},
			{APIVersion: "apps.kruise.io/v1alpha1", Kind: "StatefulSet", Name: "web"},
			{APIVersion: "a/b/c", Kind: "StatefulSet", Name: "db"},
		} {
			want := ""
			for name, s := range all {
				group, _, _ := strings.Cut(owner.APIVersion, "/")
				if ref := s.Spec.TargetReference; name.Namespace == namespace && strings.HasPrefix(ref.APIVersion, group+"/") &&
					ref.Name == owner.Name && s.DeletionTimestamp == nil && group != "a" && (want == "" || name.Name < want) {
					want = name.Name
				}
			}
			got := ""
			if s := index.First(namespace, &owner); s != nil {
				got = s.Name
			}
			if got != want {
				t.Errorf("of %s %s in %s: %q, want %q", owner.APIVersion, owner.Name, namespace, got, want)
			}
		}
	}
	wanted := map[string][]string{}
	for name, s := range all {
		in := map[string]bool{}
		for _, r := range s.Status.PodStates {
			in[r.NodeName] = true
			if r.MissingSince != nil {
				in["missing"] = true
			}
		}
		for place := range in {
			wanted[place] = append(wanted[place], name.String())
		}
	}
	for place, got := range map[string][]types.NamespacedName{
		"n1": index.On("n1"), "n2": index.On("n2"), "missing": index.Missing(),
	} {
		names := map[string]bool{}
		for _, n := range got {
			names[n.String()] = true
		}
		slices.Sort(wanted[place])
		if diff := cmp.Diff(wanted[place], slices.Sorted(maps.Keys(names))); diff != "" || len(names) != len(got) {
			t.Errorf("%s (-want +got):\n%s", place, diff)
		}
	}
}

func TestWhiteList(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []schema.GroupVersionKind
		bad  bool
	}{
		"none": {},
		"any case": {
			text: `{"Workloads":[{"group":"example.com","VERSION":"v1","Kind":"GameServerSet"}]}`,
			want: []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "GameServerSet"}},
		},
		"broken":      {text: `{"workloads":`, bad: true},
		"another one": {text: `{"rules":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := podstates.WhiteList(&corev1.ConfigMap{Data: map[string]string{
				"PPS_Watch_Custom_Workload_WhiteList": c.text,
			}})
			if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.bad {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestWorkloadOf: what each kind says about its ordinals, and what cannot be read.
func TestWorkloadOf(t *testing.T) {
	for name, c := range map[string]struct {
		group   string
		spec    map[string]any
		start   bool
		want    []int32
		unknown bool
	}{
		"native": {
			group: "apps",
			spec:  map[string]any{"replicas": int64(2), "ordinals": map[string]any{"start": int64(3)}},
			want:  []int32{3, 4},
		},
		"advanced": {
			group: "apps.kruise.io",
			spec:  map[string]any{"replicas": int64(2), "ordinals": map[string]any{"start": int64(3)}},
			want:  []int32{0, 1},
		},
		"advanced with a start": {
			group: "apps.kruise.io",
			spec:  map[string]any{"replicas": int64(2), "ordinals": map[string]any{"start": int64(3)}},
			start: true,
			want:  []int32{3, 4},
		},
		"reserved": {
			group: "apps.kruise.io",
			spec:  map[string]any{"replicas": int64(2), "reserveOrdinals": []any{int64(0), "2-4"}},
			want:  []int32{1, 5},
		},
		"a bad range": {
			group: "apps.kruise.io", spec: map[string]any{"replicas": int64(2), "reserveOrdinals": []any{"4-2"}}, unknown: true,
		},
		"a bad item": {
			group: "apps.kruise.io", spec: map[string]any{"replicas": int64(2), "reserveOrdinals": []any{true}}, unknown: true,
		},
		"a huge item": {
			group:   "apps.kruise.io",
			spec:    map[string]any{"replicas": int64(2), "reserveOrdinals": []any{int64(1) << 40}},
			unknown: true,
		},
		"no list": {
			group: "apps.kruise.io", spec: map[string]any{"replicas": int64(2), "reserveOrdinals": "x"}, unknown: true,
		},
		"custom":            {group: "example.com", spec: map[string]any{"replicas": int64(1)}, want: []int32{0}},
		"no replicas":       {group: "example.com", spec: map[string]any{}, unknown: true},
		"a text":            {group: "example.com", spec: map[string]any{"replicas": "3"}, unknown: true},
		"a negative number": {group: "example.com", spec: map[string]any{"replicas": int64(-3)}, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := podstates.WorkloadOf(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": c.group + "/v1", "kind": "StatefulSet", "spec": c.spec,
			}}, c.start)
			if got.Unknown != c.unknown || got.Gone || !c.unknown && !slices.Equal(slices.Collect(got.Ordinals.All()), c.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
