package sizing

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/note"
)

// Codes of notes.
const (
	// NoteUnlimited is a limit that is left out because a target has no limit.
	NoteUnlimited = "Unlimited"
	// NoteAboveLimit is a request above its limit: the API server will refuse the pod.
	NoteAboveLimit = "AboveLimit"
	// NoteFraction is an amount of memory with a fraction of a byte: the API server will warn of it.
	NoteFraction = "Fraction"
)

// Sized is the result of a policy for the containers of a pod.
type Sized struct {
	// Resources replace those of the injected container as a whole.
	Resources corev1.ResourceRequirements
	// Notes by the order of limits.cpu, limits.memory, requests.cpu, requests.memory.
	Notes []note.Note
}

// Targets returns the containers whose resources count: native sidecars of the pod and its containers, whose name
// matches, and which no set brings. declared are the names of all containers and init containers, whether native or
// not, of all sets that match the pod. The pod is not changed; the result shares what it refers to.
func (p Policy) Targets(pod *corev1.Pod, declared []string) []corev1.Container {
	if pod == nil {
		return nil
	}
	brought := sets.New(declared...)
	counts := func(name string) bool {
		return !brought.Has(name) && (p.names == nil || p.names.MatchString(name))
	}
	var targets []corev1.Container
	for _, c := range pod.Spec.InitContainers {
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways && counts(c.Name) {
			targets = append(targets, c)
		}
	}
	for _, c := range pod.Spec.Containers {
		if counts(c.Name) {
			targets = append(targets, c)
		}
	}
	return targets
}

// Size returns the resources of a container from its targets. Without targets the error is ErrNoTarget; else it is of
// a formula that is invalid or fails for these values.
func (p Policy) Size(targets []corev1.Container) (Sized, error) {
	if len(targets) == 0 {
		return Sized{}, ErrNoTarget
	}
	sized := Sized{}
	for _, w := range p.wants {
		if err := p.add(&sized, w, targets); err != nil {
			return Sized{}, fmt.Errorf("compute %s: %w", w.path(), err)
		}
	}
	return sized, nil
}

// add computes one limit or request into the result.
func (p Policy) add(sized *Sized, w want, targets []corev1.Container) error {
	total, without := p.total(w, targets)
	if w.list == limits && without != "" {
		sized.note(NoteUnlimited, w, fmt.Sprintf("left out, as container %q has no such limit", without))
		return nil
	}
	q, err := Evaluate(w.formula, corev1.ResourceList{w.of: total})
	if err != nil {
		return err
	}
	list := &sized.Resources.Limits
	if w.list == requests {
		list = &sized.Resources.Requests
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[w.of] = q
	if whole := q; w.of == corev1.ResourceMemory && !whole.RoundUp(0) {
		sized.note(NoteFraction, w, q.String()+" is no whole number of bytes")
	}
	limit, limited := sized.Resources.Limits[w.of]
	if w.list == requests && limited && q.Cmp(limit) > 0 {
		sized.note(NoteAboveLimit, w, fmt.Sprintf("%s is above the limit of %s", q.String(), limit.String()))
	}
	return nil
}

// total returns the sum or the maximum of the targets, and the first target without a value.
func (p Policy) total(w want, targets []corev1.Container) (total resource.Quantity, without string) {
	total.Format = resource.DecimalSI
	for i := range targets {
		list := targets[i].Resources.Limits
		if w.list == requests {
			list = targets[i].Resources.Requests
		}
		q, ok := list[w.of]
		switch {
		case !ok && without == "":
			without = targets[i].Name
		case !ok:
		case !p.largest:
			total.Add(q)
		case q.Cmp(total) > 0:
			total = q.DeepCopy()
		}
	}
	return total, without
}

func (s *Sized) note(code string, w want, text string) {
	level := note.Info
	if code == NoteAboveLimit {
		level = note.Blocked
	}
	s.Notes = append(s.Notes, note.Note{Level: level, Code: code, Object: w.path(), Text: text})
}
