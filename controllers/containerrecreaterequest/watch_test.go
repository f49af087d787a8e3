package containerrecreaterequest

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/internal/stored"
)

func TestEnds(t *testing.T) {
	open := func() *unstructured.Unstructured {
		raw := stored.Untyped(gvk())
		raw.SetLabels(map[string]string{"crr.apps.kruise.io/pod-uid": "7"})
		return raw
	}
	with := func(value any, at ...string) *unstructured.Unstructured {
		raw := open()
		if err := unstructured.SetNestedField(raw.Object, value, at...); err != nil {
			t.Fatal(err)
		}
		return raw
	}
	recreating := with("Recreating", "status", "phase")
	ended := with("Completed", "status", "phase")
	deleting := with("2026-01-02T03:04:05Z", "metadata", "deletionTimestamp")
	for name, c := range map[string]struct {
		was, is *unstructured.Unstructured
		want    bool
	}{
		"goes on":       {open(), recreating, false},
		"ends":          {recreating, ended, true},
		"has a time":    {recreating, with("2026-01-02T03:04:05Z", "status", "completionTime"), true},
		"is deleted":    {open(), deleting, true},
		"has ended":     {ended, ended, false},
		"and is to go":  {ended, deleting, false},
		"is unreadable": {recreating, with("a day", "status", "completionTime"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ends().Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
				t.Errorf("passed %t, want %t", got, c.want)
			}
		})
	}
	if ends().Create(event.CreateEvent{Object: open()}) || !ends().Delete(event.DeleteEvent{Object: open()}) {
		t.Error("a new request makes room for others, or one that is gone does not")
	}
	for raw, want := range map[client.Object][]string{open(): {"7"}, recreating: {"7"}, ended: nil, deleting: nil} {
		if got := indexed(raw); !slices.Equal(got, want) {
			t.Errorf("%v is found by %v, want %v", raw, got, want)
		}
	}
}
