package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

// Action is what a change does, for events and errors.
type Action string

const (
	// ActionMark writes the condition SidecarSetUpgradable.
	ActionMark Action = "Mark"
	// ActionReset ends a hot upgrade: the container that worked before gets the empty image.
	ActionReset Action = "Reset"
	// ActionUpdate gives a pod the images of the set. A pod that has them already gets only the records.
	ActionUpdate Action = "Update"
)

// Change is a write of one pod. Its JSON patch tests the UID of the pod and each value that it was decided upon, so
// that no value of another set is lost. Changes of other parts of the pod, as by kubelets, do not fail it.
type Change struct {
	write.Write

	// Action is what the change does.
	Action Action
	// Pod is the pod as the plan saw it.
	Pod *corev1.Pod
	// Blocks reports that the condition excludes the pod from updates of this set, and did not before.
	Blocks bool
}

// String returns what the change does to which pod, for errors.
func (c *Change) String() string {
	what := map[Action]string{
		ActionMark: "write condition of", ActionReset: "reset containers of", ActionUpdate: "update",
	}[c.Action]
	return fmt.Sprintf("%s pod %s/%s", what, c.Pod.Namespace, c.Pod.Name)
}

// draft collects what a change of a pod's containers and annotations writes.
type draft struct {
	*planner

	pod *corev1.Pod
	// images by the name of the container in the pod, and annotations with their new values.
	images, annotations map[string]string
}

func (p *planner) draft(m *member) *draft {
	return &draft{planner: p, pod: m.pod, images: map[string]string{}, annotations: map[string]string{}}
}

// change returns the draft as a write. Each test comes before the value that it protects.
func (d *draft) change(action Action) *Change {
	ops := write.TestUID(d.pod)
	for _, key := range slices.Sorted(maps.Keys(d.annotations)) {
		value := d.annotations[key]
		ops = append(ops, write.TestAnnotation(d.pod, key))
		ops = append(ops, write.SetAnnotations(d.pod, map[string]*string{key: &value})...)
	}
	for i := range d.pod.Spec.Containers {
		c := &d.pod.Spec.Containers[i]
		if image, ok := d.images[c.Name]; ok {
			at := write.Pointer("spec", "containers", strconv.Itoa(i))
			ops = append(ops, write.Test(at+"/name", c.Name), write.Test(at+"/image", c.Image),
				write.Replace(at+"/image", image))
		}
	}
	return &Change{Write: *write.JSON(d.pod, write.Main, ops...), Action: action, Pod: d.pod}
}

// annotate changes an annotation, if it has another value.
func (d *draft) annotate(key, value string) {
	if was, ok := d.pod.Annotations[key]; !ok || was != value {
		d.annotations[key] = value
	}
}

// image changes the image of a container, if it has another one.
func (d *draft) image(at int, image string) {
	if c := &d.pod.Spec.Containers[at]; c.Image != image {
		d.images[c.Name] = image
	}
}

// mark plans the conditions of the pods whose condition does not hold for the set. Pods that are updated now get theirs
// afterwards.
func (p *planner) mark() {
	chosen := map[types.UID]bool{}
	for _, c := range p.result.Updates {
		chosen[c.Pod.UID] = true
	}
	for _, m := range p.members {
		if chosen[m.pod.UID] {
			continue
		}
		was, known := upgradableBy(lifecycle.ConditionOf(m.pod, kruise.SidecarSetUpgradable))[p.in.Set.Name]
		upgradable := m.updated || p.canUpdate(m)
		switch {
		case !upgradable && !p.selected(m):
			continue
		case upgradable && known && was, upgradable && !known && (!m.updated || m.last == nil):
			continue // it holds, or no update has written it yet
		}
		if change := p.in.mark(m.pod, upgradable); change != nil {
			p.result.Marks = append(p.result.Marks, change)
		}
	}
}

// mark returns the write of the condition that reports whether the set can update the pod; nil if it does so already.
func (in *Input) mark(pod *corev1.Pod, upgradable bool) *Change {
	old := lifecycle.ConditionOf(pod, kruise.SidecarSetUpgradable)
	all := upgradableBy(old)
	was, known := all[in.Set.Name]
	all[in.Set.Name] = upgradable
	change := markOf(pod, all, in.Now)
	if change != nil {
		change.Blocks = !upgradable && (!known || was)
	}
	return change
}

// upgradableBy returns what a condition reports of each set. A message that cannot be read reports nothing, and is
// replaced.
func upgradableBy(c *corev1.PodCondition) map[string]bool {
	all := map[string]bool{}
	if c == nil || json.Unmarshal([]byte(c.Message), &all) != nil || all == nil {
		return map[string]bool{}
	}
	return all
}

// markOf returns the write of the condition with these values; nil if the pod has them.
func markOf(pod *corev1.Pod, all map[string]bool, now time.Time) *Change {
	c := corev1.PodCondition{
		Type: kruise.SidecarSetUpgradable, Status: corev1.ConditionTrue, Reason: kruise.SidecarSetUpgradableReasonAll,
		LastTransitionTime: metav1.NewTime(now),
	}
	for _, upgradable := range all {
		if !upgradable {
			c.Status, c.Reason = corev1.ConditionFalse, kruise.SidecarSetUpgradableReasonImmutableField
		}
	}
	message, _ := json.Marshal(all) //nolint:errchkjson // strings and booleans
	c.Message = string(message)
	if old := lifecycle.ConditionOf(pod, c.Type); old != nil && old.Status == c.Status {
		if old.Reason == c.Reason && old.Message == c.Message {
			return nil
		}
		c.LastTransitionTime = old.LastTransitionTime
	}
	ops := slices.Concat(write.TestUID(pod), lifecycle.TestCondition(pod, c.Type), lifecycle.SetConditions(pod, c))
	return &Change{Write: *write.JSON(pod, write.Status, ops...), Action: ActionMark, Pod: pod}
}
