// Package statuspatch writes what changed in a status, and nothing else.
//
// Merge patches are cheap and do not conflict, with two traps that this package knows: a counter that is zero while
// nothing is stored differs in no way and would be lacking, although the schema requires it; and an object of the same
// name may have taken the place of the one that was observed.
package statuspatch

import (
	"encoding/json"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Guard is what the API server compares before it applies the patch.
type Guard int

const (
	// Unguarded applies to whatever object has the name.
	Unguarded Guard = iota
	// SameObject applies to the object that was observed: the patch tests its UID.
	SameObject
	// SameVersion applies to the version that was observed: the patch tests the resource version.
	SameVersion
)

// Merge returns the merge patch that makes the status of one object that of another; nil where both are the same. The
// objects differ in their status alone. required are the fields that the patch contains also where they do not differ.
func Merge(was, is client.Object, required map[string]any, guard Guard) (client.Patch, error) {
	if apiequality.Semantic.DeepEqual(was, is) {
		return nil, nil
	}
	return Always(was, is, required, guard)
}

// Always is Merge, and returns a patch of what is required also where nothing differs.
func Always(was, is client.Object, required map[string]any, guard Guard) (client.Patch, error) {
	patchFrom := client.MergeFrom(was)
	if guard == SameVersion {
		patchFrom = client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	}
	difference, err := patchFrom.Data(is)
	if err != nil {
		return nil, fmt.Errorf("compare status: %w", err)
	}
	patch := struct {
		Metadata map[string]any `json:"metadata,omitempty"`
		Status   map[string]any `json:"status"`
	}{map[string]any{}, map[string]any{}}
	if err := json.Unmarshal(difference, &patch); err != nil {
		return nil, fmt.Errorf("decode difference: %w", err)
	}
	if guard == SameObject {
		patch.Metadata["uid"] = was.GetUID()
	}
	maps.Copy(patch.Status, required)
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

// Write returns the write that makes the status of one object that of another; nil where both are the same. required is
// as for Merge.
func Write(kind stored.Kind, was, is client.Object, required map[string]any) (*write.Write, error) {
	patch, err := Merge(was, is, required, SameObject)
	return sent(kind, was, patch, err)
}

// WriteVersion is Write, which the API server refuses where another client has changed the object.
func WriteVersion(kind stored.Kind, was, is client.Object, required map[string]any) (*write.Write, error) {
	patch, err := Merge(was, is, required, SameVersion)
	return sent(kind, was, patch, err)
}

func sent(kind stored.Kind, of client.Object, patch client.Patch, err error) (*write.Write, error) {
	if err != nil || patch == nil {
		return nil, err
	}
	data, err := patch.Data(of)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return &write.Write{
		Verb: write.Patch, Object: kind.Named(client.ObjectKeyFromObject(of)), Subresource: write.Status,
		Type: patch.Type(), Body: write.Bytes(data),
	}, nil
}

// Pass returns the pass that writes the status as Write does; nil where both are the same. An object that is gone has
// not failed. written is called with the object as it was answered, and may be nil.
func Pass( //nolint:revive // the two states are one argument to a reader
	kind stored.Kind, was, is client.Object, required map[string]any, written func(write.Object),
) (driver.Pass[*write.Write], error) {
	w, err := Write(kind, was, is, required)
	if err != nil || w == nil {
		return nil, err
	}
	return driver.Stage([]*write.Write{w}, func(_ *write.Write, answer write.Object, err error) ([]*write.Write, error) {
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("write status: %w", err)
		case written != nil:
			written(answer)
		}
		return nil, nil
	}), nil
}
