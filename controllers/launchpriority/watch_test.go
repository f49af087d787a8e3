package launchpriority

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		why        string
		change     func(*corev1.Pod)
		remembered bool
		want       bool
	}{
		"nothing":     {"a resync", func(*corev1.Pod) {}, true, false},
		"a label":     {"", func(p *corev1.Pod) { p.Labels = map[string]string{"x": "y"} }, true, false},
		"a condition": {"", func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: "X"}} }, true, false},
		"ready": {
			why: "the next may start", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = true }, want: true,
		},
		"started": {
			why: "the next may start", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Started = &yes }, want: true,
		},
		"blocked": {"something may be lost", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}
		}, false, true},
		"another pod": {"seen as one change", func(p *corev1.Pod) { p.UID = "2" }, false, true},
		"complete": {"nothing is left to do", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"apps.kruise.io/container-launch-priority-completed": "true"}
		}, false, false},
		"complete and remembered": {"it can be forgotten", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"apps.kruise.io/container-launch-priority-completed": "true"}
		}, true, true},
		"terminating": {"nothing is left to do", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{}
			was := pod()
			if c.remembered {
				r.memory.keep(client.ObjectKeyFromObject(was), was.UID, &corev1.ConfigMap{}, time.Unix(0, 0))
			}
			is := was.DeepCopy()
			c.change(is)
			if got := r.events().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != c.want {
				t.Errorf("passed %t, want %t: %s", got, c.want, c.why)
			}
			if got := r.events().Delete(event.DeleteEvent{Object: is}); got != c.remembered {
				t.Errorf("a deletion passed %t, remembered %t", got, c.remembered)
			}
		})
	}
	r := &Reconciler{}
	plain := pod()
	plain.Spec.Containers[0].Env, plain.Spec.Containers[1].Env = nil, nil
	if !r.events().Create(event.CreateEvent{Object: pod()}) || r.events().Create(event.CreateEvent{Object: plain}) ||
		r.events().Generic(event.GenericEvent{Object: pod()}) {
		t.Error("new pods that wait are events, and no others")
	}
	if !r.events().Update(event.UpdateEvent{ObjectOld: plain, ObjectNew: pod()}) {
		t.Error("a pod that did not wait before is an event")
	}
}

func TestMemory(t *testing.T) {
	m, name := &memory{}, client.ObjectKeyFromObject(pod())
	now := time.Unix(7, 0)
	barrier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "b1", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
	m.keep(name, "1", barrier, now)
	if known, is := m.of(name, "1"); !is || known.barrier.UID != "b1" || known.at != now ||
		known.barrier.ManagedFields != nil || known.marked {
		t.Errorf("%+v, %t", known, is)
	}
	if _, is := m.of(name, "2"); is {
		t.Error("another pod has the barrier of the one before")
	}
	m.mark(name, "2")
	m.mark(name, "1")
	m.keep(name, "1", barrier, now)
	if known, _ := m.of(name, "1"); !known.marked {
		t.Error("the mark is forgotten")
	}
	m.keep(name, "2", barrier, now)
	if known, _ := m.of(name, "2"); known.marked {
		t.Error("another pod has the mark of the one before")
	}
	barrier.DeletionTimestamp = &metav1.Time{}
	m.keep(name, "2", barrier, now)
	if m.has(name) {
		t.Error("a barrier that goes is remembered")
	}
}

func TestNew(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("there is no client")
	}
}
