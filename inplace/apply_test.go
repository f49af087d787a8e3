package inplace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

// apply gives the pod that the API server makes of a pod and a write. Its error says that the write no longer fits.
// A write that asks for what its subresource does not take, or for nothing, is a fault of ours.
func apply(pod *corev1.Pod, w *write.Write) (*corev1.Pod, error, error) {
	data, err := w.Data()
	if err != nil {
		return nil, nil, err
	}
	p, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s", err, data)
	}
	before, err := json.Marshal(pod)
	if err != nil {
		return nil, nil, err
	}
	after, err := p.Apply(before)
	if err != nil {
		return nil, err, nil
	}
	next := &corev1.Pod{}
	decoder := json.NewDecoder(bytes.NewReader(after))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(next); err != nil {
		return nil, nil, fmt.Errorf("%w: %s", err, after)
	}
	if err := permitted(pod, next, w.Subresource); err != nil {
		return nil, nil, fmt.Errorf("%w: %s", err, data)
	}
	n, _ := strconv.Atoi(pod.ResourceVersion)
	next.ResourceVersion = strconv.Itoa(n + 1)
	return next, nil, nil
}

// errNothing is a write that changes nothing.
var errNothing = errors.New("a write of nothing")

// permitted says what the API server would not have taken, or would have dropped.
func permitted(pod, next *corev1.Pod, subresource string) error {
	same := apiequality.Semantic.DeepEqual
	before, after := pod.DeepCopy(), next.DeepCopy()
	for _, p := range []*corev1.Pod{before, after} {
		for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
			for i := range list {
				list[i].Image, list[i].Resources = "", corev1.ResourceRequirements{}
			}
		}
	}
	if subresource != write.Status && before.Spec.Resources != nil && after.Spec.Resources != nil {
		before.Spec.Resources = after.Spec.Resources
	}
	switch {
	case same(pod, next):
		return errNothing
	case !same(before.Spec, after.Spec):
		return errors.New("a write of fixed fields")
	case subresource != write.Main && !same(pod.ObjectMeta, next.ObjectMeta):
		return errors.New("a write of metadata to " + subresource)
	case subresource != write.Status && !same(pod.Status, next.Status):
		return errors.New("a write of the status")
	case subresource == write.Status && !same(pod.Spec, next.Spec):
		return errors.New("a write of the spec to the status")
	}
	if subresource == write.Resize {
		for i := range next.Spec.Containers {
			if next.Spec.Containers[i].Image != pod.Spec.Containers[i].Image {
				return errors.New("a write of an image to resize")
			}
		}
	}
	return nil
}

// applied is apply where nothing may go wrong.
func applied(t *testing.T, pod *corev1.Pod, a inplace.Action) *corev1.Pod {
	t.Helper()
	if a.Verdict != inplace.Write {
		t.Fatalf("want a write, got %v", a)
	}
	next, refused, err := apply(pod, a.Write)
	if err := errors.Join(refused, err); err != nil {
		t.Fatal(err)
	}
	return next
}
