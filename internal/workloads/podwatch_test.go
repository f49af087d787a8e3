package workloads_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

func TestChanges(t *testing.T) {
	condition := func(c corev1.PodConditionType, s corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: c, Status: s}
	}
	state := `{"revision":"web-2","updateTimestamp":"2026-01-02T03:04:05Z","lastContainerStatuses":{"web":{"imageID":"sha256:1"}}}`
	cases := map[string]struct {
		why    string
		base   func(*corev1.Pod)
		change func(*corev1.Pod)
		want   bool
	}{
		"a restart": {
			"the set counts no restarts", nil,
			func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 7 }, false,
		},
		"an annotation of others": {
			"nobody asked for it", nil,
			func(p *corev1.Pod) { p.Annotations = map[string]string{"example.com/x": "y"} }, false,
		},
		"scheduled": {
			"PreparingNormal ends there", func(p *corev1.Pod) { p.Spec.NodeName = "" },
			func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }, true,
		},
		"no longer ready": {
			"the budget shrinks", nil,
			func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, true,
		},
		"finished": {"it counts no more", nil, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"terminating": {
			"a new one is due", nil,
			func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true,
		},
		"a label":     {"hooks, deletion by name, selection", nil, func(p *corev1.Pod) { p.Labels["x"] = "y" }, true},
		"a finalizer": {"it may be a hook", nil, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hook"} }, true},
		"an owner": {
			"the pod was taken away", nil,
			func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{UID: "other"}} }, true,
		},
		"another image runs": {
			"the update is complete and the pod still held out of traffic", updating(state),
			func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0] = corev1.ContainerStatus{
					Name: "web", Image: "web:2", ImageID: "sha256:2", Ready: true,
				}
			}, true,
		},
		"the old image still runs": {
			"nothing can be done about it", updating(state),
			func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false }, false,
		},
		"an update closed long ago": {
			"its annotation stays for ever",
			func(p *corev1.Pod) {
				updating(state)(p)
				p.Labels[kruise.LifecycleStateKey] = string(kruise.LifecycleStateNormal)
				p.Status.ContainerStatuses[0].Image, p.Status.ContainerStatuses[0].ImageID = "web:2", "sha256:2"
				p.Status.Conditions[1].Status = corev1.ConditionTrue
			},
			func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 7 }, false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "1", Labels: map[string]string{"app": "web"}},
				Spec: corev1.PodSpec{
					NodeName: "node-1", Containers: []corev1.Container{{Name: "web", Image: "web:2"}},
					ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
				},
				Status: corev1.PodStatus{
					Phase: corev1.PodRunning,
					Conditions: []corev1.PodCondition{
						condition(corev1.PodReady, corev1.ConditionTrue), condition(kruise.InPlaceUpdateReady, corev1.ConditionTrue),
					},
					ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: "web:2", ImageID: "sha256:1", Ready: true}},
				},
			}
			if c.base != nil {
				c.base(pod)
			}
			after := pod.DeepCopy()
			after.ResourceVersion = "2"
			c.change(after)
			passes := func(o workloads.WatchOptions) bool {
				o.Now = func() time.Time { return time.Unix(1_800_000_000, 0) }
				o.Policy = inplace.Policy{Env: inplace.EnvRestart, Unready: inplace.UnreadyAlways}
				return workloads.Changes(o).Update(event.UpdateEvent{ObjectOld: pod, ObjectNew: after})
			}
			if got := passes(workloads.WatchOptions{SkipQuiet: true}); got != c.want {
				t.Errorf("%s: passed %t, want %t", c.why, got, c.want)
			}
			if !passes(workloads.WatchOptions{}) {
				t.Error("without SkipQuiet every change passes")
			}
			after.ResourceVersion = pod.ResourceVersion
			if passes(workloads.WatchOptions{}) {
				t.Error("the same version again is no change")
			}
		})
	}
}

// updating makes a pod one whose in-place update was written.
func updating(state string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{kruise.InPlaceUpdateStateKey: state}
		p.Labels[kruise.LifecycleStateKey] = string(kruise.LifecycleStateUpdating)
		p.Status.Conditions[1].Status = corev1.ConditionFalse
		p.Status.ContainerStatuses[0].Image = "web:1"
	}
}
