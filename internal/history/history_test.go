package history_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/revision"
)

// sameText compares data without regard to case, as a kind compares its own.
func sameText(a, b []byte) bool { return strings.EqualFold(string(a), string(b)) }

func rev(name, data string, number int64) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: map[string]string{"set": "web"}},
		Data:       runtime.RawExtension{Raw: []byte(data)}, Revision: number,
	}
}

func wanted(data string, have ...*appsv1.ControllerRevision) history.Wanted {
	return history.Wanted{
		Resolution: history.Resolve(revision.Input{Owner: "web", Data: []byte(data), Have: have}, sameText),
		Namespace:  "n", Owner: metav1.OwnerReference{Name: "web", UID: "owner", Controller: ptr.To(true)}, Data: []byte(data), Same: sameText,
		Labels: map[string]string{"from": "template"}, Annotations: map[string]string{"from": "set"}, Select: map[string]string{"set": "web"},
		NewestLabels: map[string]string{"version": "v2"}, RaisedAnnotations: map[string]string{"claims": "c1"},
	}
}

func TestResolve(t *testing.T) {
	have := []*appsv1.ControllerRevision{rev("web-a", "A", 1), rev("web-b", "b", 2)}
	in := revision.Input{Owner: "web", Data: []byte("a"), Have: have, Current: "web-a"}
	r := history.Resolve(in, sameText)
	if r.Verdict != revision.Bump || r.Update != have[0] || r.Current != have[0] || r.Number != 3 || string(have[0].Data.Raw) != "A" {
		t.Errorf("what is the same was not found as it is stored: %+v", r)
	}
	in.Data = []byte("c")
	if r := history.Resolve(in, sameText); r.Verdict != revision.Create || r.Current != have[0] {
		t.Errorf("got %+v", r)
	}
}

func TestPlan(t *testing.T) {
	marked := rev("web-b", "b", 2)
	marked.Labels["version"] = "v2"
	cases := map[string]struct {
		data  string
		have  []*appsv1.ControllerRevision
		patch string // empty for none
	}{
		"the newest holds it":                 {"b", []*appsv1.ControllerRevision{rev("web-a", "a", 1), marked}, ""},
		"the newest lacks a label":            {"b", []*appsv1.ControllerRevision{rev("web-b", "b", 2)}, `{"metadata":{"labels":{"version":"v2"},"uid":"web-b"}}`},
		"an older one holds it":               {"B", []*appsv1.ControllerRevision{marked, rev("web-c", "c", 3)}, `{"metadata":{"annotations":{"claims":"c1"},"uid":"web-b"},"revision":4}`},
		"an older one holds it, and lacks it": {"a", []*appsv1.ControllerRevision{rev("web-a", "a", 1), marked}, `{"metadata":{"annotations":{"claims":"c1"},"labels":{"version":"v2"},"uid":"web-a"},"revision":3}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			change, err := history.Plan(wanted(c.data, c.have...))
			if err != nil || change.Create != nil || string(change.Patch) != c.patch || (change.Update != nil) != (c.patch != "") {
				t.Errorf("got %s, create %v, %v\nwant %s", change.Patch, change.Create, err, c.patch)
			}
		})
	}
	w := wanted("new", rev("web-a", "a", 1))
	change, err := history.Plan(w)
	if err != nil || change.Create == nil || change.Update != nil {
		t.Fatalf("got %+v, %v", change, err)
	}
	c := change.Create
	if c.Name != w.Resolution.Name || c.Namespace != "n" || c.Revision != 2 || string(c.Data.Raw) != "new" || len(c.OwnerReferences) != 1 ||
		len(c.Labels) != 4 || c.Labels[kruise.RevisionHashLabelKey] != w.Resolution.Hash || c.Labels["version"] != "v2" || c.Labels["from"] != "template" ||
		len(c.Annotations) != 2 || c.Annotations["claims"] != "c1" {
		t.Errorf("got %+v", c)
	}
}

// server has one revision at most, under whatever name is asked for.
type server struct {
	client.Client

	there   *appsv1.ControllerRevision
	refusal error
	writes  []string
}

func (s *server) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	s.writes = append(s.writes, "create "+o.GetName())
	switch {
	case s.refusal != nil:
		return s.refusal
	case s.there != nil:
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "controllerrevisions"}, o.GetName())
	}
	o.SetResourceVersion("2")
	return nil
}

func (s *server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.there == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "controllerrevisions"}, key.Name)
	}
	s.there.DeepCopyInto(into.(*appsv1.ControllerRevision))
	return nil
}

func (s *server) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	data, err := p.Data(o)
	s.writes = append(s.writes, "patch "+o.GetName()+" "+string(data))
	o.SetResourceVersion("3")
	return errors.Join(err, s.refusal)
}

func (s *server) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	s.writes = append(s.writes, "delete "+o.GetName())
	if o.GetName() == "web-a" {
		return s.refusal
	}
	return nil
}

func writer(s *server) history.Writer {
	return history.Writer{Client: s, Live: s, Writes: ledger.New[*appsv1.ControllerRevision](s, func() time.Time { return time.Unix(0, 0) })}
}

func TestEnsure(t *testing.T) {
	owner := types.NamespacedName{Namespace: "n", Name: "web"}
	controlled := func(r *appsv1.ControllerRevision, uid types.UID) *appsv1.ControllerRevision {
		r.OwnerReferences = []metav1.OwnerReference{{UID: uid, Controller: ptr.To(true)}}
		return r
	}
	unlabelled := rev("x", "new", 1)
	unlabelled.Labels = nil
	cases := map[string]struct {
		there   *appsv1.ControllerRevision
		refusal error
		writes  int
		taken   bool
		fails   bool
		known   int // revisions that the ledger lays over an empty cache
	}{
		"the name is free":                  {nil, nil, 1, false, false, 1},
		"an earlier process created it":     {controlled(rev("x", "NEW", 1), "owner"), nil, 1, false, false, 1},
		"it is an orphan":                   {rev("x", "new", 1), nil, 2, false, false, 1},
		"other data has the name":           {controlled(rev("x", "other", 1), "owner"), nil, 1, true, true, 0},
		"another owner has the name":        {controlled(rev("x", "new", 1), "other"), nil, 1, true, true, 0},
		"the owner would not find it again": {unlabelled, nil, 1, true, true, 0},
		"it is refused":                     {nil, apierrors.NewBadRequest("no"), 1, false, true, 0},
		"it may have been created":          {nil, errors.New("connection reset"), 1, false, true, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &server{there: c.there, refusal: c.refusal}
			w := writer(s)
			change, err := history.Plan(wanted("new"))
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := w.Ensure(t.Context(), owner, change)
			var taken *history.TakenError
			if (err != nil) != c.fails || errors.As(err, &taken) != c.taken || (fresh != nil) == c.fails || len(s.writes) != c.writes {
				t.Errorf("got %v, %v after %v", fresh, err, s.writes)
			}
			if known, _, err := w.Writes.Overlay(t.Context(), owner, nil); err != nil || len(known) != c.known {
				t.Errorf("the ledger knows %d, %v", len(known), err)
			}
		})
	}
}

func TestOthers(t *testing.T) {
	owner := types.NamespacedName{Namespace: "n", Name: "web"}
	s := &server{}
	w := writer(s)
	old := rev("web-a", "a", 1)
	change, err := history.Plan(wanted("a", old, rev("web-b", "b", 2)))
	if err != nil {
		t.Fatal(err)
	}
	if fresh, err := w.Ensure(t.Context(), owner, change); err != nil || fresh.ResourceVersion != "3" || old.ResourceVersion != "1" {
		t.Errorf("got %v, %v", fresh, err)
	}
	if fresh, err := w.Ensure(t.Context(), owner, history.Change{}); err != nil || fresh != nil {
		t.Errorf("nothing was to be written: %v, %v", fresh, err)
	}
	if fresh, err := w.Label(t.Context(), owner, old, map[string]string{"decided": "true"}); err != nil || fresh.ResourceVersion != "3" {
		t.Errorf("got %v, %v", fresh, err)
	}
	s.refusal = apierrors.NewBadRequest("no")
	err = w.Delete(t.Context(), owner, []*appsv1.ControllerRevision{old, rev("web-b", "b", 2)})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
	want := []string{
		`patch web-a {"metadata":{"annotations":{"claims":"c1"},"labels":{"version":"v2"},"uid":"web-a"},"revision":3}`,
		`patch web-a {"metadata":{"labels":{"decided":"true"},"uid":"web-a"}}`, "delete web-a", "delete web-b",
	}
	if !slices.Equal(s.writes, want) {
		t.Errorf("got  %q\nwant %q", s.writes, want)
	}
}

func TestReplace(t *testing.T) {
	a, b := rev("web-a", "a", 1), rev("web-b", "b", 2)
	raised, added := rev("web-a", "a", 3), rev("web-c", "c", 3)
	have := []*appsv1.ControllerRevision{a, b}
	if got := history.Replace(have, raised); len(got) != 2 || got[1] != raised || have[0] != a {
		t.Errorf("got %v", got)
	}
	if got := history.Replace(have, added); len(got) != 3 || got[2] != added {
		t.Errorf("got %v", got)
	}
	if got := history.Replace(have, nil); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestFind(t *testing.T) {
	all := []*appsv1.ControllerRevision{rev("web-a1", "A", 1), rev("web-b2", "b", 2)}
	for name, want := range map[string]*appsv1.ControllerRevision{"web-b2": all[1], "b2": all[1], "web-c3": nil, "": nil} {
		if got := history.Find(all, name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
