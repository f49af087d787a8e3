package lean

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Strings shares equal texts between pods: pods repeat names, labels, images, conditions and owners of others, and each
// decoder makes its own copy. It is bounded, and safe for concurrent use. The zero value is empty.
type Strings struct {
	mu   sync.Mutex
	seen map[string]string
}

const (
	// longest text that is shared; longer ones rarely repeat.
	longest = 256
	// mostStrings bounds the table, which is emptied beyond it. What is shared stays shared.
	mostStrings = 1 << 16
)

// Share replaces the texts that a lean pod has in common with others by theirs. It names the fields: reflection takes
// three times as long, at each event of a pod.
func (s *Strings) Share(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all(&pod.Kind, &pod.APIVersion, &pod.Namespace, &pod.GenerateName)
	s.values(pod.Labels)
	s.values(pod.Annotations)
	s.list(pod.Finalizers)
	for i := range pod.OwnerReferences {
		o := &pod.OwnerReferences[i]
		s.all(&o.APIVersion, &o.Kind, &o.Name, (*string)(&o.UID))
	}
	s.spec(&pod.Spec)
	s.status(&pod.Status)
}

func (s *Strings) spec(spec *corev1.PodSpec) {
	s.all(&spec.NodeName, (*string)(&spec.RestartPolicy))
	s.values(spec.NodeSelector)
	for i := range spec.Tolerations {
		t := &spec.Tolerations[i]
		s.all(&t.Key, (*string)(&t.Operator), &t.Value, (*string)(&t.Effect))
	}
	for i := range spec.ReadinessGates {
		s.all((*string)(&spec.ReadinessGates[i].ConditionType))
	}
	for i := range spec.SchedulingGates {
		s.all(&spec.SchedulingGates[i].Name)
	}
	for i := range spec.Volumes {
		s.all(&spec.Volumes[i].Name)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			s.container(&containers[i])
		}
	}
}

func (s *Strings) container(c *corev1.Container) {
	s.all(&c.Name, &c.Image, (*string)(&c.ImagePullPolicy))
	for i := range c.Env {
		s.all(&c.Env[i].Name, &c.Env[i].Value)
	}
	for i := range c.Ports {
		s.all(&c.Ports[i].Name, (*string)(&c.Ports[i].Protocol), &c.Ports[i].HostIP)
	}
	for i := range c.ResizePolicy {
		s.all((*string)(&c.ResizePolicy[i].ResourceName), (*string)(&c.ResizePolicy[i].RestartPolicy))
	}
	s.resources(c.Resources.Requests)
	s.resources(c.Resources.Limits)
}

func (s *Strings) status(status *corev1.PodStatus) {
	s.all((*string)(&status.Phase), &status.Message, &status.Reason, &status.HostIP, (*string)(&status.QOSClass),
		&status.NominatedNodeName)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		s.all((*string)(&c.Type), (*string)(&c.Status), &c.Reason, &c.Message)
	}
	for _, statuses := range [][]corev1.ContainerStatus{
		status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			c := &statuses[i]
			s.all(&c.Name, &c.Image, &c.ImageID)
			if c.Resources != nil {
				s.resources(c.Resources.Requests)
				s.resources(c.Resources.Limits)
			}
			for _, state := range []*corev1.ContainerState{&c.State, &c.LastTerminationState} {
				if state.Waiting != nil {
					s.all(&state.Waiting.Reason, &state.Waiting.Message)
				}
				if state.Terminated != nil {
					s.all(&state.Terminated.Reason, &state.Terminated.Message)
				}
			}
		}
	}
}

// resources shares the names of resources. An assignment to a key that a map has replaces the key.
func (s *Strings) resources(list corev1.ResourceList) {
	for name, amount := range list {
		s.all((*string)(&name))
		list[name] = amount
	}
}

func (s *Strings) values(of map[string]string) {
	for key, value := range of {
		s.all(&key, &value)
		of[key] = value
	}
}

func (s *Strings) list(of []string) {
	for i := range of {
		s.all(&of[i])
	}
}

func (s *Strings) all(texts ...*string) {
	for _, text := range texts {
		if n := len(*text); n > 0 && n <= longest {
			*text = s.one(*text)
		}
	}
}

func (s *Strings) one(text string) string {
	if known, is := s.seen[text]; is {
		return known
	}
	if s.seen == nil || len(s.seen) >= mostStrings {
		s.seen = map[string]string{}
	}
	text = strings.Clone(text) // it may be a part of a longer one
	s.seen[text] = text
	return text
}
