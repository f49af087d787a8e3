package sidecarterminator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/internal/stored"
)

func TestRequestEvents(t *testing.T) {
	raw := func(name string, owner types.UID, status map[string]any) *unstructured.Unstructured {
		r := stored.Untyped(gvk())
		r.SetName(name)
		if owner != "" {
			r.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: "job", UID: owner, Controller: ptr.To(true),
			}})
		}
		r.Object["status"] = status
		return r
	}
	open := raw("sidecar-termination-u1", "u1", map[string]any{"phase": "Recreating"})
	events := requestEvents()
	for name, c := range map[string]struct {
		was, is *unstructured.Unstructured
		want    bool
	}{
		"goes on": {raw("sidecar-termination-u1", "u1", nil), open, false},
		"ends":    {open, raw("sidecar-termination-u1", "u1", map[string]any{"phase": "Completed"}), true},
		"has a time": {
			open, raw("sidecar-termination-u1", "u1", map[string]any{"completionTime": "2026-01-02T03:04:05Z"}), true,
		},
		"has ended": {
			raw("sidecar-termination-u1", "u1", map[string]any{"phase": "Completed"}),
			raw("sidecar-termination-u1", "u1", map[string]any{"phase": "Completed"}), false,
		},
		"of a user":     {open, raw("mine", "u1", map[string]any{"phase": "Completed"}), false},
		"of nobody":     {open, raw("sidecar-termination-u1", "", map[string]any{"phase": "Completed"}), false},
		"of that name":  {open, raw("sidecar-termination-u1", "u2", map[string]any{"phase": "Completed"}), false},
		"not readable":  {open, raw("sidecar-termination-u1", "u1", map[string]any{"phase": int64(7)}), false},
		"without state": {open, raw("sidecar-termination-u1", "u1", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := events.Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
				t.Errorf("passed %t, want %t", got, c.want)
			}
		})
	}
	if !events.Delete(event.DeleteEvent{Object: open}) || events.Delete(event.DeleteEvent{
		Object: raw("mine", "u1", nil),
	}) {
		t.Error("the deletion of our request is an event, and that of another is none")
	}
	if !events.Create(event.CreateEvent{Object: open}) || events.Create(event.CreateEvent{
		Object: raw("mine", "u1", nil),
	}) {
		t.Error("our new request is an event, and that of another is none")
	}
	if ended(&corev1.Pod{}) {
		t.Error("a pod is no request that has ended")
	}
}

func TestNew(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("there is no client")
	}
}
