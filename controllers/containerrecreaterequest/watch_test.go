package containerrecreaterequest

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/internal/stored"
)

func TestPodEvents(t *testing.T) {
	started := func(minute int) *corev1.ContainerStateRunning {
		return &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC))}
	}
	for name, c := range map[string]struct {
		why    string
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing": {"a resync", func(*corev1.Pod) {}, false},
		"a label": {"", func(p *corev1.Pod) { p.Labels = map[string]string{"x": "y"} }, false},
		"a condition": {
			"the readiness of the pod is no request's",
			func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: "Ready"}} }, false,
		},
		"an image": {
			"not in the snapshot", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "sha256:2" }, false,
		},
		"readiness":   {"the daemon waits for it", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false }, true},
		"a restart":   {"", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount++ }, true},
		"a container": {"", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "containerd://2" }, true},
		"one more": {"", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{})
		}, true},
		"an end":        {"", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running = nil }, true},
		"another start": {"", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running = started(5) }, true},
		"a sidecar": {
			"native sidecars can be asked for", func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].Ready = true }, true,
		},
		"terminating":     {"the request is over", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, true},
		"finished":        {"no container starts again", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		"another of that": {"deleted and made again, seen as one change", func(p *corev1.Pod) { p.UID = "2" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			was := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Status: corev1.PodStatus{
				ContainerStatuses: []corev1.ContainerStatus{{
					Name: "app", Ready: true, State: corev1.ContainerState{Running: started(4)},
				}},
				InitContainerStatuses: []corev1.ContainerStatus{{Name: "mesh"}},
			}}
			is := was.DeepCopy()
			c.change(is)
			if got := podEvents().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != c.want {
				t.Errorf("passed %t, want %t: %s", got, c.want, c.why)
			}
		})
	}
	pod := &corev1.Pod{}
	if !podEvents().Create(event.CreateEvent{Object: pod}) || !podEvents().Delete(event.DeleteEvent{Object: pod}) {
		t.Error("a pod that comes or goes is no event")
	}
}

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
