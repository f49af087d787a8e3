package write_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/write"
)

func TestIsOutdated(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	kind := schema.GroupKind{Kind: "Pod"}
	cases := map[string]struct {
		why  string
		err  error
		want bool
	}{
		"none":      {"success is not outdated", nil, false},
		"not found": {"the object is gone", apierrors.NewNotFound(pods, "a"), true},
		"conflict":  {"the version is another", apierrors.NewConflict(pods, "a", errors.New("changed")), true},
		"failed test": {
			"the API server answers so where a test of a JSON patch fails",
			apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value /a failed", 0, false), true,
		},
		"wrapped": {
			"callers wrap errors", fmt.Errorf("patch pod a: %w", apierrors.NewConflict(pods, "a", errors.New("changed"))), true,
		},
		"invalid": {
			"the API server rejects the value, and will again",
			apierrors.NewInvalid(kind, "a", field.ErrorList{field.Forbidden(field.NewPath("spec"), "immutable")}), false,
		},
		"forbidden": {"a policy rejects the write", apierrors.NewForbidden(pods, "a", errors.New("no")), false},
		"transport": {"no answer says nothing about the object", errors.New("connection refused"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := write.IsOutdated(c.err); got != c.want {
				t.Errorf("%s: got %v for %v", c.why, got, c.err)
			}
		})
	}
}

func TestIsRefused(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"none": {nil, false}, "forbidden": {apierrors.NewForbidden(pods, "a", errors.New("no")), true},
		"wrapped":   {fmt.Errorf("patch: %w", apierrors.NewBadRequest("no")), true},
		"timeout":   {apierrors.NewTimeoutError("slow", 1), false},
		"throttled": {apierrors.NewTooManyRequests("later", 1), false}, "unauthorized": {apierrors.NewUnauthorized("no"), false},
		"internal": {apierrors.NewInternalError(errors.New("webhook")), false}, "transport": {errors.New("connection refused"), false},
	} {
		if got := write.IsRefused(c.err); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func ExampleJSON() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "7"}}
	w := write.JSON(pod, write.Main,
		write.Test("/metadata/uid", pod.UID),
		write.Add(write.Pointer("metadata", "labels", "example.com/drained"), "true"),
	)
	data, err := w.Data()
	fmt.Println(w.Type, err)
	fmt.Println(string(data))
	// Output:
	// application/json-patch+json <nil>
	// [{"op":"test","path":"/metadata/uid","value":"7"},{"op":"add","path":"/metadata/labels/example.com~1drained","value":"true"}]
}

func ExampleIsOutdated() {
	err := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web-1", errors.New("the object has been modified"))
	if write.IsOutdated(err) {
		fmt.Println("observe, and plan again")
	}
	// Output: observe, and plan again
}
