package applied_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets/applied"
	"github.com/kruisekit/kruisekit/write"
)

const manager = "kruisekit-test"

func workload() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
			"namespace": "shop", "name": "web", "uid": "1",
		},
		"spec": map[string]any{"replicas": int64(2)},
	}}
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager:    manager,
		Operation:  operation,
		FieldsType: "FieldsV1",
		APIVersion: "apps/v1",
		FieldsV1:   &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

// An object that another program wrote for the same owner costs one write more, once.
func TestInherit(t *testing.T) {
	const owning, other = `{"f:metadata":{"f:ownerReferences":{}},"f:spec":{"f:replicas":{}}}`,
		`{"f:spec":{"f:replicas":{}}}`
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New("no"))
	cases := map[string]struct {
		why     string
		uid     string
		entries []metav1.ManagedFieldsEntry
		reading error
		writing error
		writes  int
		fails   bool
	}{
		"another reconciler": {
			why:     "it wrote the owner reference",
			uid:     "1",
			entries: []metav1.ManagedFieldsEntry{entry("manager", metav1.ManagedFieldsOperationUpdate, owning)},
			writes:  1,
		},
		"a user": {
			why:     "kubectl scale wrote replicas alone",
			uid:     "1",
			entries: []metav1.ManagedFieldsEntry{entry("kubectl", metav1.ManagedFieldsOperationUpdate, other)},
		},
		"the reconciler": {
			why: "it has applied the object before",
			uid: "1",
			entries: []metav1.ManagedFieldsEntry{
				entry("manager", metav1.ManagedFieldsOperationUpdate, owning),
				entry(manager, metav1.ManagedFieldsOperationApply, owning),
			},
		},
		"another object": {
			why:     "it has taken the place of the observed one",
			uid:     "2",
			entries: []metav1.ManagedFieldsEntry{entry("manager", metav1.ManagedFieldsOperationUpdate, owning)},
		},
		"no object": {
			why: "it was deleted", uid: "1", reading: apierrors.NewNotFound(schema.GroupResource{}, "web"),
		},
		"the read is refused": {"the pass reports it", "1", nil, denied, nil, 0, true},
		"the write is refused": {
			why:     "the pass reports it",
			uid:     "1",
			entries: []metav1.ManagedFieldsEntry{entry("manager", metav1.ManagedFieldsOperationUpdate, owning)},
			writing: denied,
			writes:  1,
			fails:   true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rendered := workload()
			rendered.SetUID(types.UID(c.uid))
			a := &applied.Apply{Manager: manager, Rendered: rendered}
			live := workload()
			live.SetManagedFields(c.entries)
			s := &sent{t: t, answers: []answer{{live, c.reading}}}
			if c.writes > 0 {
				s.answers = append(s.answers, answer{nil, c.writing})
			}
			s.answers = append(s.answers, answer{workload(), nil})
			err := s.run(a, a.Inherit())
			want := []string{"Get", "Patch application/json-patch+json", "Patch application/apply-patch+yaml"}
			if c.writes == 0 {
				want = slices.Delete(want, 1, 2)
			}
			if c.fails {
				want = want[:1+c.writes]
			}
			if diff := cmp.Diff(want, s.writes); diff != "" || (err != nil) != c.fails || (a.Stored != nil) == c.fails {
				t.Errorf("%s: %v, stored %v; sent (-want +got):\n%s", c.why, err, a.Stored, diff)
			}
		})
	}
}

type answer struct {
	object *unstructured.Unstructured
	err    error
}

// sent are the writes of an application.
type sent struct {
	t       *testing.T
	answers []answer
	writes  []string
}

// run answers the writes.
func (s *sent) run(a *applied.Apply, w *write.Write) (err error) {
	s.t.Helper()
	for w != nil && err == nil {
		s.writes = append(s.writes, strings.TrimSpace(string(w.Verb)+" "+string(w.Type)))
		data, failed := w.Data()
		if failed != nil || w.Verb == write.Patch && !json.Valid(data) {
			s.t.Fatalf("patch %s, %v", data, failed)
		}
		if w.Type == types.JSONPatchType && !strings.Contains(string(data), manager) {
			s.t.Errorf("the fields are not those of the manager: %s", data)
		}
		if len(s.answers) == 0 {
			s.t.Fatalf("too many writes: %q", s.writes)
		}
		var object write.Object // a typed nil would be an object
		if s.answers[0].object != nil {
			object = s.answers[0].object
		}
		w, err = a.Answer(object, s.answers[0].err)
		s.answers = s.answers[1:]
	}
	return err
}

// An apply has the fields that were rendered and no others, in the name of the manager, and the answer is the stored
// object.
func TestApply(t *testing.T) {
	rendered := workload()
	a := &applied.Apply{Manager: manager, Rendered: rendered}
	w := a.Begin()
	want, _ := rendered.MarshalJSON()
	if data, err := w.Data(); err != nil || string(data) != string(want) || w.FieldOwner != manager || !w.Force {
		t.Errorf("patch %s by %+v, %v", data, w, err)
	}
	stored := workload()
	stored.SetResourceVersion("7")
	if w, err := a.Answer(stored, nil); w != nil || err != nil || a.Stored.GetResourceVersion() != "7" ||
		rendered.GetResourceVersion() != "" {
		t.Errorf("stored %v, then %v, %v", a.Stored, w, err)
	}
}

// What cannot be applied is put, and owned by the next apply.
func TestPut(t *testing.T) {
	resource := schema.GroupResource{Resource: "deployments"}
	duplicate := errors.New(`failed: duplicate entries for key [name="A"]`)
	missing, conflict := apierrors.NewNotFound(resource, "web"), apierrors.NewConflict(resource, "web", nil)
	live, put, other := workload(), workload(), workload()
	live.SetResourceVersion("1")
	put.SetManagedFields([]metav1.ManagedFieldsEntry{entry(manager, metav1.ManagedFieldsOperationUpdate, `{"f:spec":{}}`)})
	other.SetUID("2")
	const apply, merge, fields = "Patch application/apply-patch+yaml", "Patch application/merge-patch+json",
		"Patch application/json-patch+json"
	for name, c := range map[string]struct {
		uid     types.UID
		answers []answer
		want    []string
		fails   error
		stored  bool
	}{
		"a new object is created": {
			answers: []answer{{nil, duplicate}, {nil, missing}, {live, nil}},
			want:    []string{apply, "Get", "Create"}, stored: true,
		},
		"an object that exists is patched": {
			uid:     "1",
			answers: []answer{{nil, duplicate}, {live, nil}, {live, nil}},
			want:    []string{apply, "Get", merge}, stored: true,
		},
		"an object that has been put is owned, and applied again": {
			uid:     "1",
			answers: []answer{{put, nil}, {live, nil}, {live, nil}},
			want:    []string{apply, fields, apply}, stored: true,
		},
		"another object has the name": {
			uid:     "1",
			answers: []answer{{nil, duplicate}, {other, nil}},
			want:    []string{apply, "Get"},
		},
		"the object is gone": {
			uid: "1", answers: []answer{{nil, missing}}, want: []string{apply},
		},
		"the object was replaced": {
			uid: "1", answers: []answer{{nil, conflict}}, want: []string{apply},
		},
		"a creation in conflict fails": {
			answers: []answer{{nil, conflict}}, want: []string{apply}, fails: conflict,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := workload()
			rendered.SetUID(c.uid)
			a := &applied.Apply{Manager: manager, Rendered: rendered}
			s := &sent{t: t, answers: c.answers}
			err := s.run(a, a.Begin())
			if diff := cmp.Diff(c.want, s.writes); diff != "" || !errors.Is(err, c.fails) || (a.Stored != nil) != c.stored {
				t.Errorf("%v, stored %v; sent (-want +got):\n%s", err, a.Stored, diff)
			}
		})
	}
}
