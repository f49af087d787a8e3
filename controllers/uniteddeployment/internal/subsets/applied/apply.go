package applied

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Apply is the application of one object: writes and questions, each of which follows from the answer to the one
// before. It takes the rendered fields over from other managers. An object with a list that API servers accept and
// cannot apply, such as a variable that a container has twice, is created or patched.
type Apply struct {
	// Manager is the name under which the fields are applied.
	Manager string
	// Rendered is the object with the fields to apply, and with the UID of an object that exists.
	Rendered *unstructured.Unstructured
	// Stored is the object as it is stored, once it has been applied.
	Stored *unstructured.Unstructured

	// begun reports whether the object is being applied, after what it inherits.
	begun bool
	// then takes the answer to what was sent.
	then answered
}

type answered func(answer *unstructured.Unstructured, err error) (*write.Write, error)

// Begin returns the first write.
func (a *Apply) Begin() *write.Write {
	a.begun = true
	return a.sends(a.apply(), a.applied)
}

// Inherit is Begin, and makes the fields that another program wrote on behalf of the same owner those of the manager,
// so that the apply removes the ones that are no longer rendered. Caches have no managed fields, so that the object is
// asked for. An object with another UID stays as it is.
func (a *Apply) Inherit() *write.Write { return a.sends(a.ask(), a.inherit) }

// Answer takes the answer to what was sent, and returns what follows; nil for nothing. It is no failure that an object
// with a UID is gone, or that another one has its name: nothing is stored.
func (a *Apply) Answer(answer write.Object, err error) (*write.Write, error) {
	object, _ := answer.(*unstructured.Unstructured)
	follows, err := a.then(object, err)
	if a.begun && a.Rendered.GetUID() != "" && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) {
		return nil, nil
	}
	return follows, err
}

func (a *Apply) sends(w *write.Write, then answered) *write.Write {
	a.then = then
	return w
}

func (a *Apply) ask() *write.Write { return &write.Write{Verb: write.Get, Object: a.Rendered} }

func (a *Apply) apply() *write.Write {
	return &write.Write{
		Verb: write.Patch, Object: a.Rendered, Type: types.ApplyPatchType, FieldOwner: a.Manager, Force: true,
		Body: encoded{a.Rendered},
	}
}

// encoded is the body of an apply.
type encoded struct{ object *unstructured.Unstructured }

// Data returns the object as JSON.
func (e encoded) Data() ([]byte, error) {
	data, err := e.object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode workload: %w", err)
	}
	return data, nil
}

// duplicates are the words of an API server for a list that has two entries of one key.
const duplicates = "duplicate entries for key"

func (a *Apply) applied(answer *unstructured.Unstructured, err error) (*write.Write, error) {
	switch {
	case err != nil && strings.Contains(err.Error(), duplicates):
		return a.sends(a.ask(), a.put), nil
	case err != nil || !a.wasPut(answer):
		return a.end(answer, err)
	}
	return a.own(answer, sets.New(a.Manager), func() *write.Write { return a.sends(a.apply(), a.end) })
}

func (a *Apply) end(answer *unstructured.Unstructured, err error) (*write.Write, error) {
	if err == nil {
		a.Stored = answer
	}
	return nil, err
}

// put creates or patches the object: it replaces the fields of the spec that are rendered, and adds the metadata.
func (a *Apply) put(live *unstructured.Unstructured, err error) (*write.Write, error) {
	switch uid := a.Rendered.GetUID(); {
	case apierrors.IsNotFound(err) && uid == "":
		return a.sends(&write.Write{Verb: write.Create, Object: a.Rendered, FieldOwner: a.Manager}, a.end), nil
	case err != nil:
		return nil, err
	case uid != "" && uid != live.GetUID():
		return nil, apierrors.NewConflict(schema.GroupResource{
			Group: live.GroupVersionKind().Group, Resource: live.GetKind(),
		}, live.GetName(), errReplaced)
	}
	changed := live.DeepCopy()
	spec, _, _ := unstructured.NestedMap(a.Rendered.Object, "spec")
	for field, value := range spec {
		if err := unstructured.SetNestedField(changed.Object, value, "spec", field); err != nil {
			return nil, err
		}
	}
	changed.SetLabels(union(live.GetLabels(), a.Rendered.GetLabels()))
	changed.SetAnnotations(union(live.GetAnnotations(), a.Rendered.GetAnnotations()))
	w := stored.Change(live, changed)
	w.FieldOwner = a.Manager
	return a.sends(w, a.end), nil
}

var errReplaced = errors.New("another object has taken its name")

func union(live, rendered map[string]string) map[string]string {
	if live == nil {
		return rendered
	}
	maps.Copy(live, rendered)
	return live
}

// wasPut reports whether fields of an object were written by put, so that an apply does not remove them.
func (a *Apply) wasPut(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == a.Manager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	})
}

func (a *Apply) inherit(live *unstructured.Unstructured, err error) (*write.Write, error) {
	switch {
	case apierrors.IsNotFound(err), err == nil && live.GetUID() != a.Rendered.GetUID():
		return a.Begin(), nil
	case err != nil:
		return nil, err
	}
	return a.own(live, a.predecessors(live), a.Begin)
}

// own makes the fields that some managers have updated those of the manager. What follows comes after that.
func (a *Apply) own(
	live *unstructured.Unstructured, managers sets.Set[string], follows func() *write.Write,
) (*write.Write, error) {
	if len(managers) == 0 {
		return follows(), nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, managers, a.Manager)
	if err != nil {
		return nil, err
	}
	if patch == nil {
		return follows(), nil
	}
	w := &write.Write{Verb: write.Patch, Object: live, Type: types.JSONPatchType, Body: write.Bytes(patch)}
	return a.sends(w, func(_ *unstructured.Unstructured, err error) (*write.Write, error) {
		if err != nil {
			return nil, fmt.Errorf("take over managed fields of %s: %w", live.GetName(), err)
		}
		return follows(), nil
	}), nil
}

// predecessors are the managers that wrote the owner reference: programs that reconciled the owner. There are none of
// an object that the manager has applied before.
func (a *Apply) predecessors(live *unstructured.Unstructured) sets.Set[string] {
	managers := sets.New[string]()
	for _, entry := range live.GetManagedFields() {
		switch {
		case entry.Manager == a.Manager && entry.Operation == metav1.ManagedFieldsOperationApply:
			return nil
		case entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" && entry.FieldsV1 != nil &&
			strings.Contains(string(entry.FieldsV1.Raw), `"f:ownerReferences"`):
			managers.Insert(entry.Manager)
		}
	}
	return managers
}
