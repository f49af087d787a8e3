package uniteddeployment_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// Workloads are created in the order of the names of their subsets. One whose name another object has holds up no other
// one.
func TestTakenNames(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 4, "b,a")
	m.Look(u)
	taken := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: subsets.Name(u, "a")}}
	if err := m.Server.Create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	_, err := m.Reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(u)})
	if err == nil || !strings.Contains(err.Error(), "create subset a: the name is taken") {
		t.Errorf("got %v", err)
	}
	m.child(u, "b") // which fails the test where there is none
	m.Look(u)
	if c := condition(u, v1beta1.SubsetProvisioned); c == nil || c.Status != corev1.ConditionFalse ||
		len(m.Server.Events(u, "FailedUpdateSubset")) != 1 {
		t.Errorf("status %+v", u.Status)
	}
}

// A write that fails keeps no other subset and no status from being written. Without its revision no workload is
// written. What is gone is no failure.
func TestFailedWrites(t *testing.T) {
	resource := schema.GroupResource{Group: "apps.kruise.io", Resource: "clonesets"}
	denied := apierrors.NewForbidden(resource, "web", errors.New("a policy"))
	missing := apierrors.NewNotFound(resource, "web")
	const create, update = "create/revision, create/a, create/b, status/web",
		"create/revision, create/c, delete/a, patch/b, status/web"
	const unstored = "create/revision, status/web"
	for name, c := range map[string]struct {
		// later is a pass that replaces subset a by c, after the first pass.
		later  bool
		broken string
		err    error
		want   string
		fails  bool
	}{
		"creations":                   {want: create},
		"no revision":                 {broken: "create/revision", err: denied, want: unstored, fails: true},
		"a workload is not created":   {broken: "create/a", err: denied, want: create, fails: true},
		"updates":                     {later: true, want: update},
		"a workload is not updated":   {later: true, broken: "patch/b", err: denied, want: update, fails: true},
		"an updated workload is gone": {later: true, broken: "patch/b", err: missing, want: update},
		"a deleted workload is gone":  {later: true, broken: "delete/a", err: missing, want: update},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			u := m.create("web", 4, "a,b")
			if c.later {
				m.rest()
				m.change(u, topology("c", "b"), image("web:2"))
			}
			m.Look(u)
			var names []string
			for _, subset := range []string{"a", "b", "c"} {
				names = append(names, subsets.Name(u, subset), subset)
			}
			short := strings.NewReplacer(names...)
			var mu sync.Mutex
			var sent []string
			m.restart(podbench.Writes(m.Server, func(what string, write func() error) error {
				mu.Lock()
				defer mu.Unlock()
				if what = short.Replace(what); strings.HasPrefix(what, "create/web-") {
					what = "create/revision"
				}
				sent = append(sent, what)
				if what == c.broken {
					return c.err
				}
				return write()
			}))
			_, err := m.Reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(u)})
			if got := strings.Join(sent, ", "); got != c.want || (err != nil) != c.fails {
				t.Errorf("sent %s\nwant %s, %v", got, c.want, err)
			}
			m.Look(u)
			if reported := u.Status.ObservedGeneration == u.Generation; reported != (c.broken != "status/web") {
				t.Errorf("status %+v", u.Status)
			}
			if p := condition(u, v1beta1.SubsetUpdated); c.broken == "patch/b" && c.fails && p.Status != "False" {
				t.Errorf("condition %+v", p)
			}
		})
	}
}
