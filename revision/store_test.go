package revision_test

import (
	"errors"
	"fmt"
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

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// sameText compares data without regard to case, as a kind compares its own.
func sameText(a, b []byte) bool { return strings.EqualFold(string(a), string(b)) }

func storedAs(name, data string, number int64) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: map[string]string{"set": "web"},
		},
		Data: runtime.RawExtension{Raw: []byte(data)}, Revision: number,
	}
}

func wanted(data string, have ...*appsv1.ControllerRevision) revision.Wanted {
	return revision.Wanted{
		Resolution:        revision.Resolve(revision.Input{Owner: "web", Data: []byte(data), Have: have, Same: sameText}),
		Namespace:         "n",
		Owner:             metav1.OwnerReference{Name: "web", UID: "owner", Controller: ptr.To(true)},
		Labels:            map[string]string{"from": "template"},
		Annotations:       map[string]string{"from": "set"},
		Select:            map[string]string{"set": "web"},
		NewestLabels:      map[string]string{"version": "v2"},
		RaisedAnnotations: map[string]string{"claims": "c1"},
	}
}

func TestResolveSame(t *testing.T) {
	have := []*appsv1.ControllerRevision{storedAs("web-a", "A", 1), storedAs("web-b", "b", 2)}
	in := revision.Input{Owner: "web", Data: []byte("a"), Have: have, Current: "web-a", Same: sameText}
	r := revision.Resolve(in)
	if r.Verdict != revision.Bump || r.Update != have[0] || r.Current != have[0] || r.Number != 3 ||
		string(have[0].Data.Raw) != "A" {
		t.Errorf("what is the same was not found as it is stored: %+v", r)
	}
	in.Data = []byte("c")
	if r := revision.Resolve(in); r.Verdict != revision.Create || r.Current != have[0] {
		t.Errorf("got %+v", r)
	}
}

func TestStore(t *testing.T) {
	marked := storedAs("web-b", "b", 2)
	marked.Labels["version"] = "v2"
	cases := map[string]struct {
		data  string
		have  []*appsv1.ControllerRevision
		patch string // empty for none
	}{
		"the newest holds it": {"b", []*appsv1.ControllerRevision{storedAs("web-a", "a", 1), marked}, ""},
		"the newest lacks a label": {
			"b",
			[]*appsv1.ControllerRevision{storedAs("web-b", "b", 2)},
			`{"metadata":{"labels":{"version":"v2"},"uid":"web-b"}}`,
		},
		"an older one holds it": {
			"B",
			[]*appsv1.ControllerRevision{marked, storedAs("web-c", "c", 3)},
			`{"metadata":{"annotations":{"claims":"c1"},"uid":"web-b"},"revision":4}`,
		},
		"an older one holds it, and lacks it": {
			"a",
			[]*appsv1.ControllerRevision{storedAs("web-a", "a", 1), marked},
			`{"metadata":{"annotations":{"claims":"c1"},"labels":{"version":"v2"},"uid":"web-a"},"revision":3}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			store, err := revision.Store(wanted(c.data, c.have...))
			if err != nil {
				t.Fatal(err)
			}
			var got string
			for _, w := range store.Next() {
				data, err := w.Data()
				if got += string(data); err != nil || w.Verb != write.Patch {
					t.Errorf("%s, %v", w, err)
				}
			}
			if got != c.patch {
				t.Errorf("got %s\nwant %s", got, c.patch)
			}
		})
	}
	w := wanted("new", storedAs("web-a", "a", 1))
	store, err := revision.Store(w)
	if err != nil {
		t.Fatal(err)
	}
	c := store.Newest()
	if writes := store.Next(); len(writes) != 1 || writes[0].Verb != write.Create || writes[0].Object != write.Object(c) {
		t.Errorf("writes %v", writes)
	}
	if c.Name != w.Resolution.Name || c.Namespace != "n" || c.Revision != 2 || string(c.Data.Raw) != "new" ||
		len(c.OwnerReferences) != 1 || len(c.Labels) != 4 || c.Labels[kruise.RevisionHashLabelKey] != w.Resolution.Hash ||
		c.Labels["version"] != "v2" || c.Labels["from"] != "template" || len(c.Annotations) != 2 ||
		c.Annotations["claims"] != "c1" {
		t.Errorf("got %+v", c)
	}
}

// answer is what an API server has under whatever name is asked for, and answers to a write.
type answers struct {
	there   *appsv1.ControllerRevision
	refusal error
	sent    []string
}

func (a *answers) to(w *write.Write) (write.Object, error) {
	data, _ := w.Data()
	a.sent = append(a.sent, strings.TrimSpace(fmt.Sprintf("%s %s", w, data)))
	switch {
	case w.Verb == write.Get:
		return a.there, nil
	case a.refusal != nil:
		return nil, a.refusal
	case w.Verb == write.Create && a.there != nil:
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "controllerrevisions"}, w.Object.GetName())
	}
	fresh := w.Object.(*appsv1.ControllerRevision).DeepCopy()
	fresh.UID, fresh.ResourceVersion = "answered", "2"
	return fresh, nil
}

// run makes the pass.
func (a *answers) run(s *revision.Storage) {
	for writes := s.Next(); len(writes) > 0; writes = s.Next() {
		for len(writes) > 0 {
			object, err := a.to(writes[0])
			writes = append(writes[1:], s.Answer(time.Time{}, writes[0], object, err)...)
		}
	}
}

func TestStorage(t *testing.T) {
	controlled := func(r *appsv1.ControllerRevision, uid types.UID) *appsv1.ControllerRevision {
		r.OwnerReferences = []metav1.OwnerReference{{UID: uid, Controller: ptr.To(true)}}
		return r
	}
	unlabelled := storedAs("x", "new", 1)
	unlabelled.Labels = nil
	cases := map[string]struct {
		there   *appsv1.ControllerRevision
		refusal error
		sent    int
		taken   bool
		fails   bool
	}{
		"the name is free":              {sent: 1},
		"an earlier process created it": {there: controlled(storedAs("x", "NEW", 1), "owner"), sent: 2},
		"it is an orphan":               {there: storedAs("x", "new", 1), sent: 3},
		"other data has the name": {
			there: controlled(storedAs("x", "other", 1), "owner"), sent: 2, taken: true, fails: true,
		},
		"another owner has the name": {
			there: controlled(storedAs("x", "new", 1), "other"), sent: 2, taken: true, fails: true,
		},
		"the owner would not find it again": {there: unlabelled, sent: 2, taken: true, fails: true},
		"it is refused":                     {refusal: apierrors.NewBadRequest("no"), sent: 1, fails: true},
		"it may have been created":          {refusal: errors.New("connection reset"), sent: 1, fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := &answers{there: c.there, refusal: c.refusal}
			store, err := revision.Store(wanted("new"))
			if err != nil {
				t.Fatal(err)
			}
			a.run(store)
			var taken *revision.TakenError
			failed := store.Err()
			if (failed != nil) != c.fails || errors.As(failed, &taken) != c.taken || len(a.sent) != c.sent {
				t.Errorf("got %v after %q", failed, a.sent)
			}
			if stored := store.Stored(nil); (len(stored) == 1) == c.fails {
				t.Errorf("stored %v", stored)
			}
		})
	}
}

// Revisions are adopted before the newest one is written. A revision that is another one by now is left.
func TestStorageAdopts(t *testing.T) {
	orphan := storedAs("web-a", "a", 1)
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "controllerrevisions"}, "web-a")
	for name, c := range map[string]struct {
		answer error
		fails  bool
	}{
		"adopted": {}, "gone": {answer: gone}, "refused": {answer: apierrors.NewBadRequest("no"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := wanted("new", orphan)
			w.Adopt = []*write.Write{write.JSON(orphan, write.Main, write.Add("/metadata/ownerReferences", "x"))}
			store, err := revision.Store(w)
			if err != nil {
				t.Fatal(err)
			}
			first := store.Next()
			if len(first) != 1 || first[0].Verb != write.Patch {
				t.Fatalf("first %v", first)
			}
			store.Answer(time.Time{}, first[0], nil, c.answer)
			if follows := store.Next(); (len(follows) == 0) != c.fails || (store.Err() != nil) != c.fails {
				t.Errorf("then %v, %v", follows, store.Err())
			}
		})
	}
}

func TestReplace(t *testing.T) {
	a, b := storedAs("web-a", "a", 1), storedAs("web-b", "b", 2)
	raised, added := storedAs("web-a", "a", 3), storedAs("web-c", "c", 3)
	have := []*appsv1.ControllerRevision{a, b}
	if got := revision.Replace(have, raised); len(got) != 2 || got[1] != raised || have[0] != a {
		t.Errorf("got %v", got)
	}
	if got := revision.Replace(have, added); len(got) != 3 || got[2] != added {
		t.Errorf("got %v", got)
	}
	if got := revision.Replace(have, nil); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestFind(t *testing.T) {
	all := []*appsv1.ControllerRevision{storedAs("web-a1", "A", 1), storedAs("web-b2", "b", 2)}
	for name, want := range map[string]*appsv1.ControllerRevision{"web-b2": all[1], "b2": all[1], "web-c3": nil, "": nil} {
		if got := revision.Find(all, name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
