package launch_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/note"
)

const (
	ordered      = "apps.kruise.io/container-launch-priority"
	completedKey = "apps.kruise.io/container-launch-priority-completed"
	priorityEnv  = "KRUISE_CONTAINER_PRIORITY"
	barrierEnv   = "KRUISE_CONTAINER_BARRIER"
)

// newPod has containers of these names.
func newPod(names ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}}
	for _, name := range names {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
	}
	return p
}

// asking has containers a, b, c and so on with these priorities; "" for none.
func asking(priorities ...string) *corev1.Pod {
	p := newPod()
	for i, n := range priorities {
		c := corev1.Container{Name: string(rune('a' + i))}
		if n != "" {
			c.Env = append(c.Env, corev1.EnvVar{Name: priorityEnv, Value: n})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

// waiting has containers that wait for keys of the barrier: a, b, c and so on.
func waiting(keys ...string) *corev1.Pod {
	p := newPod()
	for i, k := range keys {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: string(rune('a' + i)), Env: []corev1.EnvVar{wait(p.Name, k)},
		})
	}
	return p
}

// wait is the variable that has a container of a pod wait for a key.
func wait(pod, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: barrierEnv, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: pod + "-barrier"}, Key: key,
	}}}
}

// with has containers of a pod in a state.
func with(p *corev1.Pod, state func(*corev1.ContainerStatus), names ...string) *corev1.Pod {
	for _, name := range names {
		at := -1
		for i := range p.Status.ContainerStatuses {
			if p.Status.ContainerStatuses[i].Name == name {
				at = i
			}
		}
		if at < 0 {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name})
			at = len(p.Status.ContainerStatuses) - 1
		}
		state(&p.Status.ContainerStatuses[at])
	}
	return p
}

func ready(s *corev1.ContainerStatus) { s.Ready = true }

func blocked(s *corev1.ContainerStatus) {
	s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}
}

func done(p *corev1.Pod) *corev1.Pod {
	p.Annotations = map[string]string{completedKey: "true"}
	return p
}

// barrier is that of a pod with keys.
func barrier(owner string, keys ...string) *corev1.ConfigMap {
	b := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-barrier", UID: "b1"}, Data: map[string]string{},
	}
	if owner != "" {
		b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: types.UID(owner)}}
	}
	for _, k := range keys {
		b.Data[k] = "true"
	}
	return b
}

func codes(notes []note.Note) []string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Code+" "+n.Object)
	}
	return all
}

// envs are the variables of each container, in short.
func envs(p *corev1.Pod) []string {
	var all []string
	for _, c := range p.Spec.Containers {
		text := c.Name + ":"
		for _, e := range c.Env {
			switch {
			case e.ValueFrom == nil:
				text += fmt.Sprintf(" %s=%s", e.Name, e.Value)
			case e.ValueFrom.ConfigMapKeyRef != nil:
				text += fmt.Sprintf(" %s=%s/%s", e.Name, e.ValueFrom.ConfigMapKeyRef.Name, e.ValueFrom.ConfigMapKeyRef.Key)
			}
		}
		all = append(all, text)
	}
	return all
}

// bars is how envs shows the barrier of a priority.
func bars(pod string, priority int) string {
	return fmt.Sprintf("%s=%s-barrier/p_%d", barrierEnv, pod, priority)
}
