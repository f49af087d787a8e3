package revision

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/write"
)

// Wanted is the newest revision as its owner asks for it.
type Wanted struct {
	// Resolution is what Resolve returned.
	Resolution Resolution
	// Namespace and Owner are those of a revision that is created.
	Namespace string
	Owner     metav1.OwnerReference
	// Labels and Annotations are those of a revision that is created. It also gets the label of its hash.
	Labels, Annotations map[string]string
	// Select are the labels by which the owner lists its revisions. An existing revision is adopted only with these.
	Select map[string]string
	// NewestLabels are those of the newest revision. They are written also to a revision that is the newest already.
	NewestLabels map[string]string
	// RaisedAnnotations are those of a revision that is created, or that is older and becomes the newest.
	RaisedAnnotations map[string]string
	// Adopt are writes that adopt revisions. They come first, and where one fails, nothing follows. One that was decided
	// upon an older revision has not failed.
	Adopt []*write.Write
}

// Storage is the pass that makes a revision the newest of its owner: see package driver. It creates the revision,
// adopts one that has no controller, or makes an older one the newest. A workload stores the revision before a pod
// refers to it.
type Storage struct {
	wanted Wanted
	// adopting means that the writes of Wanted.Adopt are under way.
	adopting bool
	// write makes the revision the newest; nil where it is, and once it is sent.
	write  *write.Write
	newest *appsv1.ControllerRevision
	err    error
}

// TakenError is the error of a revision whose name another revision has. Raise the collision count in the status of the
// owner: the next pass resolves another name.
type TakenError struct{ Name string }

// Error returns the name.
func (e *TakenError) Error() string { return "the name " + e.Name + " is taken by another one" }

// Store returns the pass that makes the wanted revision the newest.
func Store(w Wanted) (*Storage, error) {
	s := &Storage{wanted: w, newest: w.Resolution.Update}
	if w.Resolution.Verdict == Create {
		s.newest = w.revision()
		s.write = &write.Write{Verb: write.Create, Object: s.newest}
		return s, nil
	}
	patch, metadata := map[string]any{}, map[string]any{}
	if w.Resolution.Verdict == Bump {
		patch["revision"] = w.Resolution.Number
		if len(w.RaisedAnnotations) > 0 {
			metadata["annotations"] = w.RaisedAnnotations
		}
	}
	if missing := lacks(s.newest.Labels, w.NewestLabels); len(missing) > 0 {
		metadata["labels"] = missing
	}
	if len(patch)+len(metadata) == 0 {
		return s, nil
	}
	metadata["uid"] = s.newest.UID
	patch["metadata"] = metadata
	var err error
	s.write, err = merge(s.newest, types.MergePatchType, patch)
	return s, err
}

// merge returns the write of a merge patch.
func merge(of *appsv1.ControllerRevision, kind types.PatchType, patch map[string]any) (*write.Write, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	return &write.Write{Verb: write.Patch, Object: of, Type: kind, Body: write.Bytes(data)}, nil
}

// revision is the one to create.
func (w *Wanted) revision() *appsv1.ControllerRevision {
	object := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: w.Resolution.Name, Labels: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{w.Owner},
		},
		Data: runtime.RawExtension{Raw: w.Resolution.data}, Revision: w.Resolution.Number,
	}
	hash := map[string]string{kruise.RevisionHashLabelKey: w.Resolution.Hash}
	for _, labels := range []map[string]string{w.Labels, w.Select, w.NewestLabels, hash} {
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
	missing := maps.Clone(want)
	maps.DeleteFunc(missing, func(key, value string) bool {
		is, there := have[key]
		return there && is == value
	})
	return missing
}

// Next returns the next writes: those that adopt, then the one that makes the revision the newest.
func (s *Storage) Next() []*write.Write {
	writes := s.wanted.Adopt
	s.adopting, s.wanted.Adopt = len(writes) > 0, nil
	if !s.adopting && s.write != nil && s.err == nil {
		writes, s.write = []*write.Write{s.write}, nil
	}
	return writes
}

// Answer takes what was answered to a write. Where the name of the revision is taken, it returns the question by whom.
func (s *Storage) Answer(_ time.Time, w *write.Write, answer write.Object, err error) []*write.Write {
	if s.adopting {
		if err != nil && !write.IsOutdated(err) {
			s.err = cmp.Or(s.err, fmt.Errorf("adopt revision %s: %w", w.Object.GetName(), err))
		}
		return nil
	}
	verb := "update"
	if s.wanted.Resolution.Verdict == Create {
		verb = "create"
	}
	fresh, answered := answer.(*appsv1.ControllerRevision)
	switch {
	case w.Verb == write.Create && apierrors.IsAlreadyExists(err):
		return []*write.Write{{Verb: write.Get, Object: s.newest}}
	case err == nil && answered && w.Verb == write.Get:
		var follows []*write.Write
		if follows, err = s.adopt(fresh); err == nil {
			return follows
		}
	case err == nil:
		if answered {
			s.newest = fresh
		}
		return nil
	}
	s.err = fmt.Errorf("%s revision %s: %w", verb, s.newest.Name, err)
	return nil
}

// adopt takes the revision that has the name, if it holds the same and no other owner controls it.
func (s *Storage) adopt(there *appsv1.ControllerRevision) ([]*write.Write, error) {
	w, controller := &s.wanted, metav1.GetControllerOf(there)
	if !w.Resolution.same(there.Data.Raw, w.Resolution.data) || len(lacks(there.Labels, w.Select)) > 0 ||
		controller != nil && controller.UID != w.Owner.UID {
		return nil, &TakenError{there.Name}
	}
	s.newest = there
	if controller != nil {
		return nil, nil
	}
	patch, err := merge(there, types.StrategicMergePatchType, map[string]any{"metadata": map[string]any{
		"uid": there.UID, "ownerReferences": []metav1.OwnerReference{w.Owner},
	}})
	if err != nil {
		return nil, err
	}
	return []*write.Write{patch}, nil
}

// Err returns why the revision is not stored; nil where it is.
func (s *Storage) Err() error { return s.err }

// Newest returns the newest revision: as it was answered, or as it will be once it is written.
func (s *Storage) Newest() *appsv1.ControllerRevision { return s.newest }

// Stored returns the revisions of the owner as the last answers left them, the oldest first: have are those from
// before.
func (s *Storage) Stored(have []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	if s.newest == nil || s.newest.UID == "" { // it is not created yet
		return have
	}
	return Replace(have, s.newest)
}

// Replace returns the revisions with one that was written, the oldest first. Nil replaces none. The given slice stays
// as it is.
func Replace(all []*appsv1.ControllerRevision, written *appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	if written == nil {
		return all
	}
	next := slices.Clone(all)
	same := func(r *appsv1.ControllerRevision) bool { return r.Name == written.Name }
	if i := slices.IndexFunc(next, same); i >= 0 {
		next[i] = written
	} else {
		next = append(next, written)
	}
	Sort(next)
	return next
}

// Find returns a revision by its name or hash; nil for none.
func Find(all []*appsv1.ControllerRevision, name string) *appsv1.ControllerRevision {
	for _, stored := range all {
		if Match(stored.Name, name) {
			return stored
		}
	}
	return nil
}
