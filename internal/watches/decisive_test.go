package watches_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/test/rig/storedtest"
)

func TestDecisive(t *testing.T) {
	gvk := v1alpha1.GroupVersion.WithKind("EphemeralJob")
	selects := watches.Decisive(func(before, after *unstructured.Unstructured) bool {
		return watches.StatusChanged(before, after, "phase", "startTime")
	})
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	for name, c := range map[string]struct {
		change func(*job)
		want   bool
	}{
		"a resync":         {func(j *job) { j.ResourceVersion = "1" }, true},
		"a counter":        {func(j *job) { j.Status.Running = 3 }, false},
		"a label":          {func(j *job) { j.Labels = map[string]string{"a": "b"} }, false},
		"a decisive field": {func(j *job) { j.Status.StartTime = &now }, true},
		"a reset field":    {func(j *job) { j.Status.Phase = "" }, true},
		"another field":    {func(j *job) { j.Status.CompletionTime = &now }, false},
		"the spec":         {func(j *job) { j.Generation = 2 }, true},
		"the deletion":     {func(j *job) { j.DeletionTimestamp = &now }, true},
		"another object":   {func(j *job) { j.UID = "b" }, true},
	} {
		before := &job{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", ResourceVersion: "1", Generation: 1}}
		before.Status.Phase = v1alpha1.EphemeralJobRunning
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		c.change(after)
		if got := selects.Update(event.UpdateEvent{
			ObjectOld: storedtest.Raw(t, gvk, before), ObjectNew: storedtest.Raw(t, gvk, after),
		}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
		was, errWas := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
		is, errIs := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
		if err := errors.Join(errWas, errIs); err != nil {
			t.Fatal(err)
		}
		if got := selects.Update(event.UpdateEvent{
			ObjectOld: &unstructured.Unstructured{Object: was}, ObjectNew: &unstructured.Unstructured{Object: is},
		}); got != c.want {
			t.Errorf("%s, of a cache that does not pack: %t, want %t", name, got, c.want)
		}
	}
	if !selects.Update(event.UpdateEvent{ObjectOld: &corev1.Pod{}, ObjectNew: &corev1.Pod{}}) ||
		!selects.Create(event.CreateEvent{}) || !selects.Delete(event.DeleteEvent{}) {
		t.Error("typed objects and other events pass")
	}
}
