package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

var (
	_ client.WithWatch    = (*Server)(nil)
	_ client.FieldIndexer = (*Server)(nil)
)

// Scheme implements client.Client.
func (s *Server) Scheme() *runtime.Scheme { return s.scheme }

// GroupVersionKindFor implements client.Client.
func (s *Server) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, s.scheme)
}

// Watch implements client.WithWatch. It always fails.
func (*Server) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("package apiserver has no watch")
}

// IndexField implements client.FieldIndexer. The index holds for the kind, and for all kinds that have none of that
// name. The values of an untyped object are computed from untyped objects.
func (s *Server) IndexField(_ context.Context, of client.Object, field string, values client.IndexerFunc) error {
	_, untyped := of.(*unstructured.Unstructured)
	k, _, err := s.keyOf(of, client.ObjectKey{})
	if err != nil {
		return err
	}
	for _, kind := range []string{k.kind, ""} {
		s.indexes[indexed{kind, field}] = index{values: values, untyped: untyped}
	}
	return nil
}

// indexed is the name of an index, for a kind or, without one, for the others.
type indexed struct{ kind, field string }

// index is a field of objects.
type index struct {
	values  client.IndexerFunc
	untyped bool
}

func (i index) has(o client.Object, value string) (bool, error) {
	if !i.untyped {
		return slices.Contains(i.values(o), value), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return false, fmt.Errorf("convert %T: %w", o, err)
	}
	return slices.Contains(i.values(&unstructured.Unstructured{Object: content}), value), nil
}

// Get implements client.Reader.
func (s *Server) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, resource, err := s.keyOf(into, name)
	if err != nil {
		return err
	}
	if s.stored[k] == nil {
		return apierrors.NewNotFound(resource, name.Name)
	}
	return s.fill(into, s.stored[k])
}

// List implements client.Reader.
func (s *Server) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, _, err := s.keyOf(into, client.ObjectKey{})
	if err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	items, err := meta.GetItemsPtr(into)
	if err != nil {
		return fmt.Errorf("items of %T: %w", into, err)
	}
	list := reflect.ValueOf(items).Elem()
	list.SetLen(0)
	for _, object := range s.each(k.kind) {
		selected, err := s.selects(o, k.kind, object)
		if err != nil {
			return err
		}
		if !selected {
			continue
		}
		item := reflect.New(list.Type().Elem())
		made, is := item.Interface().(client.Object)
		if !is {
			return fmt.Errorf("list %s: %s is no object", k.kind, item.Type())
		}
		if err := s.fill(made, object); err != nil {
			return err
		}
		list.Set(reflect.Append(list, item.Elem()))
	}
	return nil
}

// selects reports whether a list has an object of a kind. Fields are those of an index.
func (s *Server) selects(o *client.ListOptions, kind string, object client.Object) (bool, error) {
	if o.Namespace != "" && o.Namespace != object.GetNamespace() ||
		o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(object.GetLabels())) {
		return false, nil
	}
	if o.FieldSelector == nil {
		return true, nil
	}
	for _, r := range o.FieldSelector.Requirements() {
		field, known := s.indexes[indexed{kind, r.Field}]
		if !known {
			field, known = s.indexes[indexed{"", r.Field}]
		}
		if !known {
			return false, fmt.Errorf("field %s has no index", r.Field)
		}
		if has, err := field.has(object, r.Value); !has || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Create implements client.Writer.
func (s *Server) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	made, err := s.create(o)
	s.record("POST", o, "", err)
	if err != nil {
		return err
	}
	return s.fill(o, made)
}

// Delete implements client.Writer.
func (s *Server) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.delete(o, (&client.DeleteOptions{}).ApplyOptions(options))
	s.record("DELETE", o, "", err)
	return err
}

// Patch implements client.Writer.
func (s *Server) Patch(_ context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if patch.Type() == types.ApplyPatchType {
		return s.applyInto(o, patch, (&client.PatchOptions{}).ApplyOptions(options))
	}
	return s.patchInto(o, "", patch)
}

func (s *Server) patchInto(o client.Object, subresource string, patch client.Patch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	after, err := s.patch(o, subresource, patch)
	s.record("PATCH", o, subresource, err)
	if err != nil {
		return err
	}
	return s.fill(o, after)
}

// Status implements client.Client.
func (s *Server) Status() client.SubResourceWriter { return s.SubResource("status") }

// SubResource implements client.Client.
func (s *Server) SubResource(name string) client.SubResourceClient {
	return &subresource{server: s, name: name}
}

type subresource struct {
	client.SubResourceClient
	server *Server
	name   string
}

// Patch implements client.SubResourceWriter.
func (r *subresource) Patch(
	_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
) error {
	return r.server.patchInto(o, r.name, patch)
}

// Create implements client.SubResourceWriter for evictions, which no budget refuses.
func (r *subresource) Create(
	_ context.Context, o, body client.Object, _ ...client.SubResourceCreateOption,
) error {
	eviction, is := body.(*policyv1.Eviction)
	if !is || r.name != "eviction" {
		return fmt.Errorf("create %s: only evictions are served", r.name)
	}
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	options := &client.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		options.Preconditions = eviction.DeleteOptions.Preconditions
	}
	err := r.server.delete(o, options)
	r.server.record("POST", o, r.name, err)
	return err
}

// record notes a request. The caller holds the lock.
func (s *Server) record(verb string, o client.Object, subresource string, err error) {
	code := 200
	if verb == "POST" {
		code = 201
	}
	if err != nil {
		code = 0
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			code = int(status.Status().Code)
		}
	}
	_, resource, _ := s.keyOf(o, client.ObjectKeyFromObject(o))
	path := resource.Resource + "/" + o.GetName()
	if subresource != "" {
		path += "/" + subresource
	}
	s.requests = append(s.requests, fmt.Sprintf("%s %s %d", verb, path, code))
}

// fill decodes a stored object into another one, typed or not. What was in it before is gone.
func (s *Server) fill(into, from client.Object) error {
	if reflect.TypeOf(into) == reflect.TypeOf(from) {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
		return nil
	}
	kind, err := s.GroupVersionKindFor(from)
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return fmt.Errorf("convert %s: %w", kind.Kind, err)
	}
	if raw, is := into.(runtime.Unstructured); is {
		raw.SetUnstructuredContent(content)
	} else {
		raw, err := json.Marshal(map[string]any{"metadata": content["metadata"]})
		if err != nil {
			return fmt.Errorf("encode metadata: %w", err)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("decode metadata: %w", err)
		}
	}
	into.GetObjectKind().SetGroupVersionKind(kind)
	return nil
}
