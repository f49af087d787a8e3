package launchpriority

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func pod() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}}
	for name, key := range map[string]string{"a": "p_0", "b": "p_-1"} {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Env: []corev1.EnvVar{{
			Name: "KRUISE_CONTAINER_BARRIER", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "web-barrier"}, Key: key,
			}},
		}}})
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a"}, {Name: "b"}}
	return p
}

func TestEvents(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		why    string
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing": {"a resync", func(p *corev1.Pod) { p.ResourceVersion = "" }, false},
		"ready": {
			why: "the next may start", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = true }, want: true,
		},
		"started": {
			why: "the next may start", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Started = &yes }, want: true,
		},
		"blocked": {"something may be lost", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}
		}, true},
		"another pod": {"seen as one change", func(p *corev1.Pod) { p.UID = "2" }, true},
		"complete": {"nothing is left to do", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"apps.kruise.io/container-launch-priority-completed": "true"}
		}, false},
		"terminating": {"nothing is left to do", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{}
			was := pod()
			is := was.DeepCopy()
			is.ResourceVersion = "2"
			c.change(is)
			if got := r.events().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != c.want {
				t.Errorf("passed %t, want %t: %s", got, c.want, c.why)
			}
		})
	}
	r := &Reconciler{}
	plain := pod()
	plain.Spec.Containers[0].Env, plain.Spec.Containers[1].Env = nil, nil
	if !r.events().Create(event.CreateEvent{Object: pod()}) || r.events().Create(event.CreateEvent{Object: plain}) {
		t.Error("new pods that wait are events, and no others")
	}
}

func TestNew(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("there is no client")
	}
}
