package write_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/write"
)

// denied is the error of a write that a webhook denies with a status and a message only.
func denied(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    code,
		Message: `admission webhook "rules.example.com" denied the request: no such image`,
	}}
}

// An error belongs to the classes that its answer has, also where a caller has wrapped the error.
func TestClasses(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	type classes struct{ outdated, refused, final bool }
	cases := map[string]struct {
		err  error
		want classes
	}{
		"none: success has no class":       {nil, classes{}},
		"conflict: the version is another": {apierrors.NewConflict(pods, "a", nil), classes{outdated: true, refused: true}},
		"failed test: the API server answers so where a test of a JSON patch fails": {
			apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
				"testing value /a failed", 0, false), classes{outdated: true, refused: true, final: true},
		},
		"wrapped conflict: callers wrap errors": {
			fmt.Errorf("patch pod: %w", apierrors.NewConflict(pods, "a", nil)),
			classes{outdated: true, refused: true},
		},
		"denied as a conflict: what a webhook compares is not what the write was based on": {
			denied(http.StatusConflict),
			classes{refused: true},
		},
		"denied as not found": {denied(http.StatusNotFound), classes{refused: true}},
		"the object is gone":  {apierrors.NewNotFound(pods, "a"), classes{outdated: true, refused: true}},
		"already exists":      {apierrors.NewAlreadyExists(pods, "a"), classes{refused: true}},
		"invalid: the same write is rejected again": {
			apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil),
			classes{refused: true, final: true},
		},
		"forbidden: a policy rejects the write": {
			apierrors.NewForbidden(pods, "a", nil), classes{refused: true, final: true},
		},
		"bad request: the API server cannot read the write": {
			apierrors.NewBadRequest("no"), classes{refused: true, final: true},
		},
		"too large: the object must get smaller": {
			apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
			classes{refused: true, final: true},
		},
		"too large for etcd: the same, as the API server answers it": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: request is too large"}},
			classes{refused: true, final: true},
		},
		"too large for its connection: the same": {
			&apierrors.StatusError{ErrStatus: metav1.Status{
				Code:    500,
				Message: "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2113022 vs. 2097152)",
			}},
			classes{refused: true, final: true},
		},
		"wrapped: callers wrap errors": {
			fmt.Errorf("write pod: %w", apierrors.NewBadRequest("no")),
			classes{refused: true, final: true},
		},
		"the webhook denies it again; API servers pass the status of a webhook on without details": {
			denied(http.StatusUnprocessableEntity), classes{refused: true, final: true},
		},
		"webhook: a webhook that fails may fail for all": {apierrors.NewInternalError(errors.New("webhook")), classes{}},
		"unauthorized: all writes fail":                  {apierrors.NewUnauthorized("who"), classes{}},
		"throttled: all writes fail for now":             {apierrors.NewTooManyRequests("slow down", 1), classes{}},
		"timeout: the write may have been made":          {apierrors.NewTimeoutError("slow", 1), classes{}},
		"unavailable: no API server serves":              {apierrors.NewServiceUnavailable("later"), classes{}},
		"connection: the write may have been made":       {errors.New("connection reset"), classes{}},
		"deadline: the write may have been made":         {context.DeadlineExceeded, classes{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := classes{write.IsOutdated(c.err), write.IsRefused(c.err), write.IsFinal(c.err)}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
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
	err := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web-1",
		errors.New("the object has been modified"))
	if write.IsOutdated(err) {
		fmt.Println("observe, and plan again")
	}
	// Output: observe, and plan again
}

// The body of a write is what its source makes, at the time when it is asked for.
func TestData(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}
	cases := map[string]struct {
		w    *write.Write
		want string
		fail bool
	}{
		"creation: a creation has no body beside its object": {&write.Write{Verb: write.Create, Object: pod}, "", false},
		"bytes: a body that is made already is sent as it is": {
			w:    &write.Write{Verb: write.Patch, Object: pod, Body: write.Bytes(`{"a":1}`)},
			want: `{"a":1}`,
		},
		"not encodable: a value that JSON cannot hold is an error": {
			w:    write.JSON(pod, write.Main, write.Add("/a", func() {})),
			fail: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := c.w.Data()
			if string(data) != c.want || (err != nil) != c.fail {
				t.Errorf("got %s, %v", data, err)
			}
		})
	}
}

// client-go takes subresources as a variadic argument, and an empty one would be part of the path.
func TestSubresources(t *testing.T) {
	pod := &corev1.Pod{}
	if got := write.JSON(pod, write.Main).Subresources(); len(got) != 0 {
		t.Errorf("the object itself: %q", got)
	}
	if got := write.JSON(pod, write.Resize).Subresources(); len(got) != 1 || got[0] != "resize" {
		t.Errorf("a resize: %q", got)
	}
}
