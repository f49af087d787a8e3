package apiserver

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/patches"
)

// patch changes an object, or its subresource.
func (s *Server) patch(o client.Object, subresource string, patch client.Patch) (client.Object, error) {
	k, resource, err := s.keyOf(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return nil, err
	}
	have := s.stored[k]
	if have == nil {
		return nil, apierrors.NewNotFound(resource, o.GetName())
	}
	data, err := patch.Data(o)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	raw, err := json.Marshal(have)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k.kind, err)
	}
	if raw, err = patches.Apply(raw, patch.Type(), data, have); err != nil {
		return nil, err
	}
	after, err := decodeLike(have, raw)
	if err != nil {
		return nil, err
	}
	if after.GetUID() != have.GetUID() || after.GetResourceVersion() != have.GetResourceVersion() {
		return nil, apierrors.NewConflict(resource, o.GetName(),
			fmt.Errorf("it has UID %s and version %s", have.GetUID(), have.GetResourceVersion()))
	}
	if err := check(subresource, have, after); err != nil {
		return nil, err
	}
	return s.replace(k, have, after), nil
}

// decodeLike decodes an object of the type of another one.
func decodeLike(have client.Object, raw []byte) (client.Object, error) {
	after, is := reflect.New(reflect.TypeOf(have).Elem()).Interface().(client.Object)
	if !is {
		return nil, fmt.Errorf("decode %T: not an object", have)
	}
	if err := json.Unmarshal(raw, after); err != nil {
		return nil, fmt.Errorf("decode %T: %w", have, err)
	}
	return after, nil
}

// check returns an error for a patch that changes more than its subresource has.
func check(subresource string, before, after client.Object) error {
	pod, isPod := after.(*corev1.Pod)
	old, wasPod := before.(*corev1.Pod)
	if isPod && wasPod {
		return patches.CheckPod(subresource, old, pod)
	}
	return checkStatus(subresource, before, after)
}

func checkStatus(subresource string, before, after client.Object) error {
	same := apiequality.Semantic.DeepEqual
	if subresource == "" {
		if fieldOf(before, "Spec") != nil && !same(fieldOf(before, "Status"), fieldOf(after, "Status")) {
			return &patches.DroppedError{Subresource: subresource, Changed: "the status"}
		}
		return nil
	}
	rest, is := after.DeepCopyObject().(client.Object)
	if !is {
		return fmt.Errorf("copy %T: the copy is no object", after)
	}
	if raw, untyped := rest.(*unstructured.Unstructured); untyped {
		if delete(raw.Object, "status"); fieldOf(before, "Status") != nil {
			raw.Object["status"] = fieldOf(before, "Status")
		}
	} else if status := reflect.ValueOf(rest).Elem().FieldByName("Status"); status.IsValid() {
		status.Set(reflect.ValueOf(fieldOf(before, "Status")))
	}
	if !same(before, rest) {
		return &patches.DroppedError{Subresource: subresource, Changed: "more than the status"}
	}
	return nil
}
