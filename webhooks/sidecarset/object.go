package sidecarset

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
)

// resource is the plural of the kind.
const resource = "sidecarsets"

// typed is a SidecarSet of either version.
type typed interface {
	metav1.Object
	runtime.Object
	Default()
}

// readTyped returns an object in its version.
func readTyped(version review.Version, raw []byte) (typed, error) { //nolint:ireturn // it is of one of two types
	var set typed = &appsv1beta1.SidecarSet{}
	if version == review.Old {
		set = &appsv1alpha1.SidecarSet{}
	}
	err := review.Unmarshal(raw, set)
	var wrong *review.TypeError
	if errors.As(err, &wrong) {
		// The decoder names the struct that is embedded.
		wrong.Path = strings.Replace(wrong.Path, ".Container.", ".", 1)
		err = fmt.Errorf("decode object: %w", wrong)
	} else if err != nil {
		err = located(raw, err)
	}
	return set, err
}

// located returns the field of containers and volumes that cannot be decoded, which errors of quantities and times do
// not name: a *field.Error, or the error as it was.
func located(raw []byte, err error) error {
	c, malformed := review.Decode(raw)
	if malformed != nil {
		return err
	}
	for _, name := range podParts() {
		for i, element := range content(c).list(name) {
			fields, _ := element.(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(fields)) {
				var into any = &appsv1beta1.SidecarContainer{}
				if name == "volumes" {
					into = &corev1.Volume{}
				}
				data, broken := json.Marshal(map[string]any{key: fields[key]})
				if broken == nil {
					broken = json.Unmarshal(data, into)
				}
				if broken != nil {
					return field.Invalid(field.NewPath("spec", name).Index(i).Child(key), fields[key], broken.Error())
				}
			}
		}
	}
	return err
}

// hubOf returns a set as v1beta1, which may share parts with the set.
func hubOf(set typed) (*appsv1beta1.SidecarSet, error) {
	switch set := set.(type) {
	case *appsv1beta1.SidecarSet:
		return set, nil
	case *appsv1alpha1.SidecarSet:
		hub := &appsv1beta1.SidecarSet{}
		if err := set.ConvertTo(hub); err != nil {
			return nil, fmt.Errorf("convert to v1beta1: %w", err)
		}
		return hub, nil
	}
	return nil, fmt.Errorf("%T is no SidecarSet", set)
}

// object is a SidecarSet as it was sent, and decoded.
type object struct {
	content content
	set     *appsv1beta1.SidecarSet
}

func read(version review.Version, raw []byte) (object, error) {
	c, err := review.Decode(raw)
	if err != nil {
		return object{}, err
	}
	set, err := readTyped(version, raw)
	if err != nil {
		return object{}, err
	}
	hub, err := hubOf(set)
	return object{content: content(c), set: hub}, err
}

// content is an object as it was sent, with the fields that no schema describes.
type content map[string]any

func (c content) spec() map[string]any {
	spec, _ := c["spec"].(map[string]any)
	return spec
}

// list returns nil for a missing list.
func (c content) list(name string) []any {
	list, _ := c.spec()[name].([]any)
	return list
}

// inVersion returns the faults with the paths of the version. It shares no fault with its input.
func inVersion(version review.Version, faults field.ErrorList, namespaced bool) field.ErrorList {
	if version == review.Hub {
		return faults
	}
	moved := make(field.ErrorList, len(faults))
	for i, fault := range faults {
		f := *fault
		switch below, ok := strings.CutPrefix(f.Field, "spec.namespaceSelector"); {
		case ok && namespaced && below == "":
			f.Field = "spec.namespace"
		case ok && namespaced && strings.HasPrefix(below, ".matchLabels"):
			f.Field = "spec.namespace"
		case f.Field == "spec.customVersion":
			f.Field = field.NewPath("metadata", "labels").Key(appsv1alpha1.SidecarSetCustomVersionLabel).String()
		}
		moved[i] = &f
	}
	return moved
}
