package stored

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// LeanPods makes pods lean, and has them share what is equal: the texts of all pods, because pods repeat names, labels,
// images and conditions of others, and the containers and tolerations of pods of one revision of one owner. Each
// decoder makes copies of its own. What is shared is only read, as all that a cache has. LeanPods is bounded, and safe
// for concurrent use. The zero value is empty.
type LeanPods struct {
	mu        sync.Mutex
	seen      map[string]string
	templates map[template]parts
}

// template names pods that likely have equal parts.
type template struct {
	namespace string
	owner     types.UID
	revision  string
}

// parts of one pod.
type parts struct {
	init, main  []corev1.Container
	tolerations []corev1.Toleration
}

const (
	// longest text that is shared; longer ones rarely repeat.
	longest = 256
	// mostStrings bounds the table of texts, which is emptied beyond it. What is shared stays shared.
	mostStrings = 1 << 16
	// mostTemplates bounds the table of parts in the same way.
	mostTemplates = 1 << 12
	// mostParts is how many containers, variables, ports and tolerations a pod may have, of which the table keeps the
	// parts. Pods with more share their texts alone.
	mostParts = 64
)

// Pod makes a pod lean, and replaces what the pod has in common with others by theirs. It names the fields: reflection
// takes three times as long, at each event of a pod.
func (s *LeanPods) Pod(pod *corev1.Pod) {
	LeanPod(pod)
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
	s.parts(pod)
	s.status(&pod.Status)
	shareResources(pod)
}

func (s *LeanPods) spec(spec *corev1.PodSpec) {
	s.all(&spec.NodeName, (*string)(&spec.RestartPolicy))
	s.values(spec.NodeSelector)
	for i := range spec.ReadinessGates {
		s.all((*string)(&spec.ReadinessGates[i].ConditionType))
	}
	for i := range spec.SchedulingGates {
		s.all(&spec.SchedulingGates[i].Name)
	}
	for i := range spec.Volumes {
		s.all(&spec.Volumes[i].Name)
	}
}

// parts shares the containers and the tolerations of a pod with the last pod of its template.
func (s *LeanPods) parts(pod *corev1.Pod) {
	spec := &pod.Spec
	of, is := templateOf(pod)
	known := s.templates[of]
	if !is {
		known = parts{}
	}
	spec.InitContainers = s.containers(spec.InitContainers, known.init)
	spec.Containers = s.containers(spec.Containers, known.main)
	spec.Tolerations = s.tolerations(spec.Tolerations, known.tolerations)
	if !is || count(spec) > mostParts {
		return
	}
	if s.templates == nil || len(s.templates) >= mostTemplates {
		s.templates = map[template]parts{}
	}
	s.templates[of] = parts{spec.InitContainers, spec.Containers, spec.Tolerations}
}

// templateOf returns the template of a pod; false for a pod without a controller. The pods of a job have no revision.
// Pods of another namespace cannot stand for its pods, whatever owner they claim.
func templateOf(pod *corev1.Pod) (template, bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return template{}, false
	}
	revision := cmp.Or(
		pod.Labels[appsv1.ControllerRevisionHashLabelKey], pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
	return template{pod.Namespace, owner.UID, revision}, true
}

// count returns how many parts a pod has.
func count(spec *corev1.PodSpec) int {
	n := len(spec.Tolerations)
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			n += 1 + len(containers[i].Env) + len(containers[i].Ports)
		}
	}
	return n
}

// containers returns the containers of another pod where they are equal. Otherwise the texts are shared. Slices and
// maps are not written in place, for a cache may pass a pod a second time, after others have taken its parts.
func (s *LeanPods) containers(mine, others []corev1.Container) []corev1.Container {
	if sameContainers(mine, others) {
		return others
	}
	for i := range mine {
		s.container(&mine[i])
	}
	return mine
}

func (s *LeanPods) tolerations(mine, others []corev1.Toleration) []corev1.Toleration {
	if slices.EqualFunc(mine, others, sameToleration) {
		return others
	}
	mine = slices.Clone(mine)
	for i := range mine {
		t := &mine[i]
		s.all(&t.Key, (*string)(&t.Operator), &t.Value, (*string)(&t.Effect))
	}
	return mine
}

func (s *LeanPods) container(c *corev1.Container) {
	c.Ports, c.ResizePolicy = slices.Clone(c.Ports), slices.Clone(c.ResizePolicy)
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
}

func (s *LeanPods) status(status *corev1.PodStatus) {
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

func (s *LeanPods) values(of map[string]string) {
	for key, value := range of {
		s.all(&key, &value)
		of[key] = value
	}
}

func (s *LeanPods) list(of []string) {
	for i := range of {
		s.all(&of[i])
	}
}

func (s *LeanPods) all(texts ...*string) {
	for _, text := range texts {
		if n := len(*text); n > 0 && n <= longest {
			*text = s.one(*text)
		}
	}
}

func (s *LeanPods) one(text string) string {
	if known, ok := s.seen[text]; ok {
		return known
	}
	if s.seen == nil || len(s.seen) >= mostStrings {
		s.seen = map[string]string{}
	}
	text = strings.Clone(text) // it may be a part of a longer one
	s.seen[text] = text
	return text
}

// sameContainers reports whether lean containers are equal. Of containers that are not lean it sees no difference in
// what LeanPod drops.
func sameContainers(a, b []corev1.Container) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameContainer(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func sameContainer(a, b *corev1.Container) bool {
	return a.Name == b.Name && a.Image == b.Image && a.ImagePullPolicy == b.ImagePullPolicy &&
		ptr.Equal(a.RestartPolicy, b.RestartPolicy) &&
		slices.Equal(a.Ports, b.Ports) && slices.Equal(a.ResizePolicy, b.ResizePolicy) &&
		slices.Equal(a.Resources.Claims, b.Resources.Claims) &&
		sameEnvironment(a.Env, b.Env) &&
		maps.Equal(a.Resources.Requests, b.Resources.Requests) && maps.Equal(a.Resources.Limits, b.Resources.Limits) &&
		(len(a.RestartPolicyRules)+len(b.RestartPolicyRules) == 0 ||
			reflect.DeepEqual(a.RestartPolicyRules, b.RestartPolicyRules)) &&
		(a.Lifecycle == nil && b.Lifecycle == nil || reflect.DeepEqual(a.Lifecycle, b.Lifecycle))
}

func sameEnvironment(a, b []corev1.EnvVar) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Name != y.Name || x.Value != y.Value ||
			(x.ValueFrom != nil || y.ValueFrom != nil) && !reflect.DeepEqual(x.ValueFrom, y.ValueFrom) {
			return false
		}
	}
	return true
}

func sameToleration(a, b corev1.Toleration) bool {
	if !ptr.Equal(a.TolerationSeconds, b.TolerationSeconds) {
		return false
	}
	a.TolerationSeconds, b.TolerationSeconds = nil, nil
	return a == b
}

// shareResources has the statuses of containers share the amounts of their containers, which a running pod repeats.
func shareResources(pod *corev1.Pod) {
	share(pod.Status.InitContainerStatuses, pod.Spec.InitContainers)
	share(pod.Status.ContainerStatuses, pod.Spec.Containers)
}

func share(statuses []corev1.ContainerStatus, containers []corev1.Container) {
	for i := range statuses {
		has := statuses[i].Resources
		if has == nil {
			continue
		}
		for j := range containers {
			if c := &containers[j]; c.Name == statuses[i].Name {
				has.Requests = common(has.Requests, c.Resources.Requests)
				has.Limits = common(has.Limits, c.Resources.Limits)
			}
		}
	}
}

// common returns the other amounts where they are equal.
func common(mine, others corev1.ResourceList) corev1.ResourceList {
	if len(mine) > 0 && maps.Equal(mine, others) {
		return others
	}
	return mine
}
