package inplace_test

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/inplace"
)

// readBack expects that a controller that takes the pod back opens no gate while a container runs its old image.
// TestRollouts calls it in every state that an update leaves.
func (o *rollout) readBack() {
	late := o.oldImage()
	if late == "" {
		return
	}
	if doneForOpenKruise(o.k.pod) {
		o.fail("OpenKruise takes the update for complete: %s", late)
	}
	batches := slices.ContainsFunc(o.k.pod.Spec.Containers, func(c corev1.Container) bool {
		_, ok := inplace.LaunchPriority(&c, nil)
		return ok
	})
	// An image that the node starts late, for an update that was overtaken, is another imageID as well.
	if !batches && !o.overtaken && doneByImageID(o.k.pod) {
		o.fail("a reader of the imageIDs alone takes the update for complete: %s", late)
	}
}

// oldImage returns the container that does not run the image that it has, or gets later in this update.
func (o *rollout) oldImage() string {
	pod := o.k.pod
	wants := map[string]string{}
	for _, c := range pod.Spec.Containers {
		wants[c.Name] = c.Image
	}
	if state, err := inplace.StateOf(pod, nil); err == nil && state != nil {
		maps.Copy(wants, state.NextContainerImages)
	}
	if grace, err := inplace.GraceOf(pod, nil); err == nil && grace != nil {
		maps.Copy(wants, grace.ContainerImages)
	}
	for name, image := range wants {
		if imageID(o.k.runs[name].image) != imageID(image) {
			return name + " does not run " + image
		}
	}
	return ""
}

// doneByImageID is the rule of the forks of OpenKruise that know neither grace periods nor batches: each recorded
// container has another imageID.
func doneByImageID(pod *corev1.Pod) bool {
	state, err := inplace.StateOf(pod, nil)
	if err != nil || state == nil {
		return false
	}
	for _, s := range pod.Status.ContainerStatuses {
		if last, ok := state.LastContainerStatuses[s.Name]; ok && last.ImageID == s.ImageID {
			return false
		}
	}
	return true
}

// doneForOpenKruise is the rule of OpenKruise without a node daemon: nothing waits, and each recorded container has
// another imageID or the image of its spec.
func doneForOpenKruise(pod *corev1.Pod) bool {
	state, err := inplace.StateOf(pod, nil)
	grace, failed := inplace.GraceOf(pod, nil)
	if err != nil || failed != nil || state == nil || grace != nil || len(state.NextContainerImages) > 0 {
		return false
	}
	for i, s := range pod.Status.ContainerStatuses {
		last, ok := state.LastContainerStatuses[s.Name]
		if ok && last.ImageID == s.ImageID && s.Image != pod.Spec.Containers[i].Image {
			return false
		}
	}
	return true
}
