// Package history keeps the ControllerRevisions of an owner: what package revision resolves is planned here as a value, and
// executed by a Writer.
//
//	resolution := history.Resolve(revision.Input{...}, same)
//	change, err := history.Plan(history.Wanted{Resolution: resolution, Data: data, ...})
//	...
//	newest, err := writer.Ensure(ctx, key, change)     // create, adopt, or make an old one the newest
//	revisions = history.Replace(revisions, newest)
//	...
//	err = writer.Delete(ctx, key, surplus)             // trim
//
// A name that another revision has taken is a [TakenError]: the owner then raises the collision count of its status, and the next
// pass resolves another name.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/revision"
)

// Resolve is revision.Resolve for data that same compares: of the stored revisions, those that are the same have the bytes of the
// wanted data.
func Resolve(in revision.Input, same func(a, b []byte) bool) revision.Resolution {
	have := slices.Clone(in.Have)
	byName := make(map[string]*appsv1.ControllerRevision, len(have))
	for i, stored := range have {
		byName[stored.Name] = stored
		if !bytes.Equal(stored.Data.Raw, in.Data) && same(stored.Data.Raw, in.Data) {
			alike := *stored
			alike.Data.Raw = in.Data
			have[i] = &alike
		}
	}
	in.Have = have
	r := revision.Resolve(in)
	if r.Update != nil {
		r.Update = byName[r.Update.Name]
	}
	if r.Current != nil {
		r.Current = byName[r.Current.Name]
	}
	return r
}

// Wanted is the newest revision as its owner asks for it.
type Wanted struct {
	Resolution revision.Resolution
	Namespace  string
	Owner      metav1.OwnerReference
	Data       []byte
	// Same compares the data of two revisions; nil for revision.SameData.
	Same func(a, b []byte) bool
	// Labels and Annotations are those of a revision that is created. It also gets the label of its hash.
	Labels, Annotations map[string]string
	// Select are the labels by which the owner lists its revisions. An existing revision is adopted only with these.
	Select map[string]string
	// NewestLabels are those of the newest revision. They are written also to a revision that is the newest already.
	NewestLabels map[string]string
	// RaisedAnnotations are those of a revision that is created, or that is older and becomes the newest.
	RaisedAnnotations map[string]string
}

// Change is what is to be written; nothing where both are nil.
type Change struct {
	Create *appsv1.ControllerRevision
	// Update is the revision to which Patch, a merge patch, is applied.
	Update *appsv1.ControllerRevision
	Patch  []byte

	wanted Wanted
}

// Plan returns what makes the wanted revision the newest.
func Plan(w Wanted) (Change, error) {
	if w.Same == nil {
		w.Same = revision.SameData
	}
	if w.Resolution.Verdict == revision.Create {
		return Change{Create: w.revision(), wanted: w}, nil
	}
	patch, metadata, update := map[string]any{}, map[string]any{}, w.Resolution.Update
	if w.Resolution.Verdict == revision.Bump {
		patch["revision"] = w.Resolution.Number
		if len(w.RaisedAnnotations) > 0 {
			metadata["annotations"] = w.RaisedAnnotations
		}
	}
	if missing := lacks(update.Labels, w.NewestLabels); len(missing) > 0 {
		metadata["labels"] = missing
	}
	if len(patch)+len(metadata) == 0 {
		return Change{}, nil
	}
	metadata["uid"] = update.UID
	patch["metadata"] = metadata
	data, err := json.Marshal(patch)
	if err != nil {
		return Change{}, fmt.Errorf("encode revision: %w", err)
	}
	return Change{Update: update, Patch: data, wanted: w}, nil
}

// revision is the one to create.
func (w *Wanted) revision() *appsv1.ControllerRevision {
	object := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: w.Resolution.Name, Labels: map[string]string{}, OwnerReferences: []metav1.OwnerReference{w.Owner},
		},
		Data: runtime.RawExtension{Raw: w.Data}, Revision: w.Resolution.Number,
	}
	for _, labels := range []map[string]string{w.Labels, w.Select, w.NewestLabels, {kruise.RevisionHashLabelKey: w.Resolution.Hash}} {
		maps.Copy(object.Labels, labels)
	}
	if len(w.Annotations)+len(w.RaisedAnnotations) > 0 {
		object.Annotations = map[string]string{}
		maps.Copy(object.Annotations, w.Annotations)
		maps.Copy(object.Annotations, w.RaisedAnnotations)
	}
	return object
}

// lacks returns those of the wanted labels that are not there.
func lacks(have, want map[string]string) map[string]string {
	missing := map[string]string{}
	for key, value := range want {
		if is, there := have[key]; !there || is != value {
			missing[key] = value
		}
	}
	return missing
}

// TakenError is the error of a revision whose name another one has taken.
type TakenError struct{ Name string }

func (e *TakenError) Error() string { return "the name " + e.Name + " is taken by another one" }

// Writer writes revisions.
type Writer struct {
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Writes are those of revisions, by the key of their owner.
	Writes *ledger.Ledger[*appsv1.ControllerRevision]
}

// Ensure executes a change. It returns the revision that was written; nil where nothing was to be.
func (w Writer) Ensure(ctx context.Context, owner types.NamespacedName, c Change) (*appsv1.ControllerRevision, error) {
	switch {
	case c.Create != nil:
		return w.create(ctx, owner, c)
	case c.Update != nil:
		fresh := c.Update.DeepCopy()
		if err := w.patch(ctx, owner, fresh, c.Patch); err != nil {
			return nil, fmt.Errorf("update revision %s: %w", fresh.Name, err)
		}
		return fresh, nil
	}
	return nil, nil
}

func (w Writer) create(ctx context.Context, owner types.NamespacedName, c Change) (*appsv1.ControllerRevision, error) {
	made := c.Create.DeepCopy()
	err := w.Client.Create(ctx, made)
	switch {
	case apierrors.IsAlreadyExists(err):
		made, err = w.adopt(ctx, c)
	case err != nil:
		w.Writes.Doubt(owner, made, err)
	}
	if err != nil {
		return nil, fmt.Errorf("create revision %s: %w", c.Create.Name, err)
	}
	w.Writes.Created(owner, made)
	return made, nil
}

// adopt takes the revision that has the name, if it holds the same and no other owner controls it.
func (w Writer) adopt(ctx context.Context, c Change) (*appsv1.ControllerRevision, error) {
	there := &appsv1.ControllerRevision{}
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(c.Create), there); err != nil {
		return nil, err
	}
	controller := metav1.GetControllerOf(there)
	if !c.wanted.Same(there.Data.Raw, c.wanted.Data) || len(lacks(there.Labels, c.wanted.Select)) > 0 ||
		controller != nil && controller.UID != c.wanted.Owner.UID {
		return nil, &TakenError{there.Name}
	}
	if controller != nil {
		return there, nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": there.UID, "ownerReferences": []metav1.OwnerReference{c.wanted.Owner},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode owner: %w", err)
	}
	return there, w.Client.Patch(ctx, there, client.RawPatch(types.StrategicMergePatchType, data))
}

// patch writes to a revision. fresh becomes the answer.
func (w Writer) patch(ctx context.Context, owner types.NamespacedName, fresh *appsv1.ControllerRevision, data []byte) error {
	if err := w.Client.Patch(ctx, fresh, client.RawPatch(types.MergePatchType, data)); err != nil {
		return err
	}
	w.Writes.Patched(owner, fresh)
	return nil
}

// Label sets labels of a revision, and returns what the revision became.
func (w Writer) Label(ctx context.Context, owner types.NamespacedName, rev *appsv1.ControllerRevision, labels map[string]string) (*appsv1.ControllerRevision, error) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": rev.UID, "labels": labels}})
	if err != nil {
		return nil, fmt.Errorf("encode label: %w", err)
	}
	fresh := rev.DeepCopy()
	if err := w.patch(ctx, owner, fresh, data); err != nil {
		return nil, fmt.Errorf("label revision %s: %w", rev.Name, err)
	}
	return fresh, nil
}

// Delete deletes revisions. One whose deletion is refused keeps no other one.
func (w Writer) Delete(ctx context.Context, owner types.NamespacedName, surplus []*appsv1.ControllerRevision) error {
	_, err := batches.Each(surplus, func(old *appsv1.ControllerRevision) error {
		if err := w.Client.Delete(ctx, old.DeepCopy(), client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete revision %s: %w", old.Name, err)
		}
		w.Writes.Deleted(owner, old)
		return nil
	})
	return err
}

// Find returns a revision by its name or hash; nil for none.
func Find(all []*appsv1.ControllerRevision, name string) *appsv1.ControllerRevision {
	for _, stored := range all {
		if revision.Match(stored.Name, name) {
			return stored
		}
	}
	return nil
}

// Replace returns the revisions with one that was written, the oldest first. Nil replaces none. The given slice stays as it is.
func Replace(all []*appsv1.ControllerRevision, written *appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	if written == nil {
		return all
	}
	next := slices.Clone(all)
	if i := slices.IndexFunc(next, func(r *appsv1.ControllerRevision) bool { return r.Name == written.Name }); i >= 0 {
		next[i] = written
	} else {
		next = append(next, written)
	}
	revision.Sort(next)
	return next
}
