package probes

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// What a probe finds is marked at once, however often it changes.
func TestChangingMarks(t *testing.T) {
	w := newWorld(t)
	w.put(nodeOf("node-1", nil), podOf("web-0", "node-1", "web"), markerOf("ppm", "web", "idle"))
	w.still()
	for k := range 30 {
		w.good["uid-web-0 ppm#idle"] = k%2 == 0
		w.turn()
		w.turn()
		want := map[bool]string{true: "good", false: "bad"}[k%2 == 0]
		if is := w.pods()[0].Labels["ppm-idle"]; is != want {
			t.Fatalf("after %d changes the pod has %q, want %q", k+1, is, want)
		}
	}
}

// A change of labels wakes the reconcilers where another marker selects the pod then.
func TestReselected(t *testing.T) {
	w := newWorld(t)
	w.put(markerOf("ppm", "web", "idle"), markerOf("db", "db", "idle"))
	woken := false
	events := (&markers.Markers{Cached: w.Server}).PodEvents(nil,
		func(watches.Queue, *corev1.Pod, []*v1alpha1.PodProbeMarker) { woken = true })
	for labels, want := range map[[2]string]bool{
		{"app", "web"}: false, {"app", "db"}: true, {"app", "none"}: true, {"ppm-idle", "other"}: false,
	} {
		was := podOf("web-0", "node-1", "web")
		is := was.DeepCopy()
		is.Labels[labels[0]] = labels[1]
		woken = false
		events.Update(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, nil)
		if woken != want {
			t.Errorf("%s: %t", fmt.Sprint(labels), woken)
		}
	}
}
