package stored

import (
	"encoding/json"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/write"
)

// Guard is what the API server compares before it applies the patch of a status.
//
// Merge patches are cheap and do not conflict, with two traps: a counter that is zero while nothing is stored differs
// in no way and would be lacking, although the schema requires it; and an object of the same name may have taken the
// place of the one that was observed.
type Guard int

const (
	// SameObject applies to the object that was observed: the patch tests its UID.
	SameObject Guard = iota
	// SameVersion applies to the version that was observed: the patch tests the resource version.
	SameVersion
)

// MergeStatus returns the merge patch that makes the status of one object that of another; nil where both are the same.
// The objects differ in their status alone. required are the fields that the patch contains also where they do not
// differ.
func MergeStatus(was, is client.Object, required map[string]any, guard Guard) (client.Patch, error) {
	if apiequality.Semantic.DeepEqual(was, is) {
		return nil, nil
	}
	return AlwaysMergeStatus(was, is, required, guard)
}

// AlwaysMergeStatus is MergeStatus, and returns a patch of what is required also where nothing differs.
func AlwaysMergeStatus(was, is client.Object, required map[string]any, guard Guard) (client.Patch, error) {
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

// WriteStatus returns the write that makes the status of one object that of another; nil where both are the same.
// required is as for MergeStatus.
func WriteStatus(kind Kind, was, is client.Object, required map[string]any) (*write.Write, error) {
	patch, err := MergeStatus(was, is, required, SameObject)
	return sent(kind, was, patch, err)
}

// WriteStatusVersion is WriteStatus, which the API server refuses where another client has changed the object.
func WriteStatusVersion(kind Kind, was, is client.Object, required map[string]any) (*write.Write, error) {
	patch, err := MergeStatus(was, is, required, SameVersion)
	return sent(kind, was, patch, err)
}

func sent(kind Kind, of client.Object, patch client.Patch, err error) (*write.Write, error) {
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
