package apiserver

import (
	"encoding/json"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	fields, data, err := fieldsOf(o, patch, options)
	if err != nil {
		return nil, err
	}
	k, resource, err := s.keyOf(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return nil, err
	}
	kind, err := s.GroupVersionKindFor(o)
	if err != nil {
		return nil, err
	}
	uid, _ := fields["metadata"].(map[string]any)["uid"].(string)
	have := s.stored[k]
	if have == nil && uid != "" || have != nil && uid != "" && string(have.GetUID()) != uid {
		return nil, apierrors.NewConflict(resource, o.GetName(), fmt.Errorf("there is no such object with UID %s", uid))
	}
	made, err := s.scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", k.kind, err)
	}
	object, is := made.(client.Object)
	if !is {
		return nil, fmt.Errorf("apply %T: not an object", made)
	}
	by := applier{of: k, manager: options.FieldManager}
	if have == nil {
		return s.created(object, data, by, fields)
	}
	by.uid = have.GetUID()
	current, err := runtime.DefaultUnstructuredConverter.ToUnstructured(have)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", k.kind, err)
	}
	removed(current, s.applied[by], fields)
	merged(current, fields)
	raw, err := json.Marshal(current)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k.kind, err)
	}
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	s.applied[by] = fields
	return s.replace(k, have, object), nil
}

// fieldsOf decodes what is applied.
func fieldsOf(
	o client.Object, patch client.Patch, options *client.PatchOptions,
) (fields map[string]any, data []byte, err error) {
	if options.FieldManager == "" || options.Force == nil || !*options.Force {
		return nil, nil, apierrors.NewBadRequest("an apply needs a manager, and is forced")
	}
	if data, err = patch.Data(o); err != nil {
		return nil, nil, fmt.Errorf("encode patch: %w", err)
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return fields, data, nil
}

// created stores a new object that was applied.
func (s *Server) created(object client.Object, data []byte, by applier, fields map[string]any) (client.Object, error) {
	if err := json.Unmarshal(data, object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object, err := s.create(object)
	if err != nil {
		return nil, err
	}
	by.uid = object.GetUID()
	s.applied[by] = fields
	return object, nil
}

// removed drops the fields that were applied before and are not any more.
func removed(current, before, now map[string]any) {
	for key, was := range before {
		is, still := now[key]
		if !still {
			delete(current, key)
			continue
		}
		below, isObject := current[key].(map[string]any)
		x, wasObject := was.(map[string]any)
		y, isWanted := is.(map[string]any)
		if isObject && wasObject && isWanted {
			removed(below, x, y)
		}
	}
}

// merged writes fields into an object.
func merged(current, fields map[string]any) {
	for key, value := range fields {
		below, isObject := current[key].(map[string]any)
		wanted, is := value.(map[string]any)
		if isObject && is {
			merged(below, wanted)
			continue
		}
		if !reflect.DeepEqual(current[key], value) {
			current[key] = value
		}
	}
}
