package sidecarterminator

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
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
	events := (&Reconciler{}).requestEvents
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
			if got := events().Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
				t.Errorf("passed %t, want %t", got, c.want)
			}
		})
	}
	if !events().Delete(event.DeleteEvent{Object: open}) || events().Delete(event.DeleteEvent{
		Object: raw("mine", "u1", nil),
	}) {
		t.Error("the deletion of our request is an event, and that of another is none")
	}
	if events().Create(event.CreateEvent{Object: open}) || ended(&corev1.Pod{}) {
		t.Error("what is new has not ended")
	}
}

func TestMemory(t *testing.T) {
	r := &Reconciler{}
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		UID: "r1", Name: "sidecar-termination-u1", OwnerReferences: []metav1.OwnerReference{{
			Kind: "Pod", UID: "u1", Controller: ptr.To(true),
		}},
	}}
	r.memory.keep("u1", request, at(0))
	r.memory.keep("u2", request, at(59))
	r.memory.seen("u1", "r0")
	if r.memory.newer("u1", at(59)) != request || r.memory.newer("u1", at(60)) != nil ||
		r.memory.newer("u3", at(0)) != nil {
		t.Error("what is remembered is not what was made in the last minute")
	}
	r.memory.keep("u3", request, at(60))
	if len(r.memory.pods) != 2 {
		t.Errorf("%d are remembered", len(r.memory.pods))
	}
	r.memory.keep("u1", request, at(60))
	r.requestEvents().Create(event.CreateEvent{Object: request})
	if r.memory.newer("u1", at(60)) != nil {
		t.Error("the cache shows it, and it is still remembered")
	}
}

func TestNew(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("there is no client")
	}
}
