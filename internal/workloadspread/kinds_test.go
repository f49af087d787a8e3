package workloadspread_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
)

const listed = `{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game","subResources":[{"Group":"example.com","Version":"v1","Kind":"Match"}],"replicasPath":"spec.size"}]}`

// TestKinds: the list is read again, and what cannot be read leaves the last one in force.
func TestKinds(t *testing.T) {
	s := newCluster(t)
	now := time.Unix(0, 0)
	k := &workloadspread.Kinds{Live: s, Now: func() time.Time { return now }}
	game := schema.GroupKind{Group: "example.com", Kind: "Game"}
	set := func(text string) {
		t.Helper()
		s.put(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-configuration"},
			Data:       map[string]string{"WorkloadSpread_Watch_Custom_Workload_WhiteList": text},
		})
	}
	for _, step := range []struct {
		why    string
		change func()
		want   []schema.GroupKind
		reads  int32
	}{
		{"there is no list", func() {}, nil, 1},
		{"the list is not read again at once", func() { set(listed) }, nil, 0},
		{"but soon", func() { now = now.Add(30 * time.Second) }, []schema.GroupKind{game}, 1},
		{"nonsense changes nothing", func() { set(`{`); now = now.Add(time.Minute) }, []schema.GroupKind{game}, 1},
		{"an empty list allows nothing", func() { set(`{}`); now = now.Add(time.Minute) }, nil, 1},
	} {
		step.change()
		before := s.reads.Load()
		if diff := cmp.Diff(step.want, k.Read(t.Context()).Targets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.why, diff)
		}
		if n := s.reads.Load() - before; n != step.reads {
			t.Errorf("%s: %d reads", step.why, n)
		}
	}
}

// TestFurtherKinds: the pods of a target of a listed kind are spread, also where another listed kind is in between, and
// its replicas come from the path of the list.
func TestFurtherKinds(t *testing.T) {
	for name, c := range map[string]struct {
		why  string
		list string
		want string
		// reads of owners past the cache for two pods of a CloneSet, whose owner may be a target.
		reads int32
	}{
		"listed":     {why: "the chain is climbed", list: listed, want: "a", reads: 1},
		"not listed": {why: "the kind is not allowed", list: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCluster(t)
			ws := spread("s", "Game", 1, -1)
			ws.Spec.TargetReference.APIVersion = "example.com/v9"
			s.put(ws)
			s.put(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-configuration"},
				Data:       map[string]string{"WorkloadSpread_Watch_Custom_Workload_WhiteList": c.list},
			})
			match := &unstructured.Unstructured{}
			match.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Match"})
			match.SetNamespace(shop)
			match.SetName("m")
			match.SetUID("uid-m")
			match.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: "example.com/v1", Kind: "Game", Name: "web", UID: types.UID("uid-web"), Controller: ptr.To(true),
			}})
			s.put(match)
			d, x := s.replica(workloadspread.Options{})
			s.show(x, "s")
			if got := subsetOf(s.admit(d, pod("p", "example.com/v1", "Match", "m"), "1")); got != c.want {
				t.Errorf("%s: subset %q", c.why, got)
			}
			s.put(&appsv1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "uid-web"}})
			s.reads.Store(0)
			for _, name := range []string{"q-1", "q-2"} {
				if s.admit(d, cloned(name), name) != nil {
					t.Errorf("%s: pod %s of a CloneSet is spread", c.why, name)
				}
			}
			if n := s.reads.Load(); n != c.reads {
				t.Errorf("%s: %d owners are read past the cache, want %d", c.why, n, c.reads)
			}
		})
	}
}
