package apiserver

import (
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/patches"
)

// applier is a manager of fields of an object.
type applier struct {
	of      key
	uid     types.UID
	manager string
}

// applyInto is a forced server-side apply. Lists are atomic.
func (s *Server) applyInto(o client.Object, patch client.Patch, options *client.PatchOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	after, err := s.apply(o, patch, options)
	s.record("APPLY", o, "", err)
	if err != nil {
		return err
	}
	return s.fill(o, after)
}

func (s *Server) apply(o client.Object, patch client.Patch, options *client.PatchOptions) (client.Object, error) {
	if options.FieldManager == "" || options.Force == nil || !*options.Force {
		return nil, apierrors.NewBadRequest("an apply needs a manager, and is forced")
	}
	fields, err := patch.Data(o)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	var wanted struct {
		Metadata struct{ UID types.UID }
	}
	if err := json.Unmarshal(fields, &wanted); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	k, resource, err := s.keyOf(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return nil, err
	}
	have, uid := s.stored[k], wanted.Metadata.UID
	if uid != "" && (have == nil || have.GetUID() != uid) {
		return nil, apierrors.NewConflict(resource, o.GetName(), fmt.Errorf("there is no such object with UID %s", uid))
	}
	by := applier{of: k, manager: options.FieldManager}
	var after client.Object
	if have == nil {
		after, err = s.applyNew(o, fields)
	} else {
		by.uid = have.GetUID()
		after, err = s.applyChange(k, s.applied[by], fields)
	}
	if err != nil {
		return nil, err
	}
	by.uid = after.GetUID()
	s.applied[by] = fields
	return after, nil
}

func (s *Server) applyNew(o client.Object, fields []byte) (client.Object, error) {
	kind, err := s.GroupVersionKindFor(o)
	if err != nil {
		return nil, err
	}
	made, err := s.scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", kind.Kind, err)
	}
	object, is := made.(client.Object)
	if !is {
		return nil, fmt.Errorf("apply %T: not an object", made)
	}
	if err := json.Unmarshal(fields, object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.create(object)
}

// applyChange changes a stored object. The fields that were applied before, and are missing now, are removed.
func (s *Server) applyChange(k key, before, fields []byte) (client.Object, error) {
	have := s.stored[k]
	current, err := json.Marshal(have)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k.kind, err)
	}
	change, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, fields, current)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	raw, err := patches.Apply(current, types.MergePatchType, change, have)
	if err != nil {
		return nil, err
	}
	after, err := decodeLike(have, raw)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.replace(k, have, after), nil
}
