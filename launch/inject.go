package launch

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
)

// mostGenerated is how much of generateName the API server keeps, so that a name with its suffix is a label of DNS.
const mostGenerated = 58

// Options of Inject.
type Options struct {
	// Suffix completes the name of a pod that has only generateName: five random characters, other ones each time, as
	// rand.String(5) of apimachinery gives them. Without it such a pod is an error.
	Suffix string
	// Keys are the annotations and variables of the pods; nil for those of OpenKruise.
	Keys *kruise.Keys
}

// Injection is the result of Inject.
type Injection struct {
	// Pod is the pod with its barriers; nil if it does not change.
	Pod *corev1.Pod
	// Notes report what is unusual.
	Notes []note.Note

	keys *kruise.Keys
}

// Inject adds barriers to a new pod, so that its containers start in the order that it asks for by an annotation or by
// priorities. It must follow whatever adds containers. A fault names the invalid field.
func Inject(pod *corev1.Pod, o Options) (Injection, field.ErrorList) {
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return Injection{Notes: staticNotes(pod, o.Keys)}, nil
	}
	all, faults := priorities(pod, o.Keys)
	if all == nil || len(faults) > 0 {
		return Injection{}, faults
	}
	i := Injection{Pod: pod.DeepCopy(), keys: o.Keys}
	if fault := i.name(o.Suffix); fault != nil {
		return Injection{}, field.ErrorList{fault}
	}
	barrier := BarrierName(i.Pod.Name)
	for at := range i.Pod.Spec.Containers {
		i.hold(&i.Pod.Spec.Containers[at], barrier, all[at])
	}
	if key, _, is := o.Keys.Lookup(i.Pod.Annotations, (*kruise.Keys).LaunchCompletedKey); is {
		delete(i.Pod.Annotations, key)
		i.note(NoteCompletedDropped, i.Pod.Name, "a new pod is not complete: its containers would wait for ever")
	}
	if equality.Semantic.DeepEqual(pod, i.Pod) {
		i.Pod = nil
	}
	return i, nil
}

// BarrierName is the name of the ConfigMap that the containers of a pod wait for.
func BarrierName(pod string) string { return pod + kruise.ContainerLaunchBarrierNameSuffix }

func (i *Injection) note(code, object, text string) {
	i.Notes = append(i.Notes, newNote(code, object, text))
}

func staticNotes(pod *corev1.Pod, keys *kruise.Keys) []note.Note {
	if all, _ := priorities(pod, keys); all == nil {
		return nil
	}
	return []note.Note{{
		Code: NoteStatic, Object: pod.Name, Text: "the kubelet starts a static pod from its file, in no order",
	}}
}

// name completes the name of the pod, and validates the name of the barrier.
func (i *Injection) name(suffix string) *field.Error {
	at := field.NewPath("metadata", "name")
	if i.Pod.Name == "" {
		base := i.Pod.GenerateName
		if base == "" {
			return field.Required(at, "or generateName")
		}
		if suffix == "" {
			return field.InternalError(at, errors.New("nothing to complete generateName with"))
		}
		i.Pod.Name = base[:min(len(base), mostGenerated)] + suffix
		i.note(NoteNameCompleted, i.Pod.Name,
			"the barrier is called after the pod, so its name cannot be left to the API server")
	}
	if most := validation.DNS1123SubdomainMaxLength -
		len(kruise.ContainerLaunchBarrierNameSuffix); len(i.Pod.Name) > most {
		return field.TooLong(at, i.Pod.Name, most)
	}
	return nil
}

// hold makes a container wait for the key of its priority, in place of another one.
func (i *Injection) hold(c *corev1.Container, barrier string, priority int64) {
	wait := corev1.EnvVar{Name: i.keys.LaunchBarrierEnvName(), ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: barrier}, Key: keyOf(priority),
		},
	}}
	is := func(e corev1.EnvVar) bool { return e.Name == wait.Name }
	at := slices.IndexFunc(c.Env, is)
	if at < 0 {
		c.Env = append(c.Env, wait)
		return
	}
	rest := slices.DeleteFunc(slices.Clone(c.Env[at+1:]), is)
	if len(rest) < len(c.Env)-at-1 || !equality.Semantic.DeepEqual(c.Env[at], wait) {
		i.note(NoteReplaced, c.Name, "the container waited for something else")
	}
	c.Env = append(append(c.Env[:at], wait), rest...)
}
