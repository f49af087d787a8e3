package imagepull

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// WorkPlan is what a node does about its NodeImage.
type WorkPlan struct {
	// Start are the pulls to begin.
	Start []Pull
	// Keep are those that go on, or have ended, with the secrets and limits that the NodeImage now has for them.
	Keep []Pull
	// Stop are the pulls to cancel without a status or an event. The NodeImage no longer lists their tags, or lists
	// another version, or has their results already; or another pull has the same reference.
	Stop []Pull
	// Status is the whole status, with pulls that are yet to begin as waiting. What is not about images is as it was.
	Status v1beta1.NodeImageStatus
}

// Work compares what a NodeImage asks for with the pulls that a node has, ended ones included, and says which to start
// and which to stop. It is asked again after each change of either, also to have the status that follows. A status that
// has an end and the version of its tag is settled: that is how results outlive the node's process, and how a
// controller ends a pull.
func Work(n *v1beta1.NodeImage, pulls []Pull) WorkPlan {
	have := map[Reference]Pull{}
	plan := WorkPlan{Status: *n.Status.DeepCopy()}
	for _, p := range slices.SortedFunc(slices.Values(pulls), byReference) {
		if other, twice := have[p.Reference]; twice {
			plan.Stop = append(plan.Stop, other)
		}
		have[p.Reference] = p
	}
	statuses := map[string]v1beta1.ImageStatus{}
	for _, name := range slices.Sorted(maps.Keys(n.Spec.Images)) {
		image := n.Spec.Images[name]
		var tags []v1beta1.ImageTagStatus
		for _, t := range slices.SortedFunc(slices.Values(image.Tags), func(a, b v1beta1.ImageTagSpec) int {
			return strings.Compare(a.Tag, b.Tag)
		}) {
			if len(tags) > 0 && tags[len(tags)-1].Tag == t.Tag {
				continue // admission refuses a tag that stands twice
			}
			tags = append(tags, plan.tag(n, have, newPull(name, image, t)))
		}
		if len(tags) > 0 {
			statuses[name] = v1beta1.ImageStatus{Tags: tags}
		}
	}
	for _, p := range have {
		plan.Stop = append(plan.Stop, p)
	}
	slices.SortFunc(plan.Stop, byReference)
	plan.Status.ImageStatuses = statuses
	tally(&plan.Status, n.Spec.Images)
	return plan
}

// tag decides about one tag and returns its status. The pull that the node has leaves have, unless it is to be stopped.
func (w *WorkPlan) tag(n *v1beta1.NodeImage, have map[Reference]Pull, wanted Pull) v1beta1.ImageTagStatus {
	ref := wanted.Reference
	if s := statusOf(n, ref); s != nil && s.Version == wanted.Tag.Version && s.CompletionTime != nil {
		return *s.DeepCopy()
	}
	p, there := have[ref]
	if !there || p.Tag.Version != wanted.Tag.Version {
		w.Start = append(w.Start, wanted)
		return wanted.Status
	}
	delete(have, ref)
	p = p.asked(ref.Name, n.Spec.Images[ref.Name], wanted.Tag)
	w.Keep = append(w.Keep, p)
	return *p.Status.DeepCopy()
}

func byReference(a, b Pull) int {
	return cmp.Or(strings.Compare(a.Reference.Name, b.Reference.Name), strings.Compare(a.Reference.Tag, b.Reference.Tag),
		cmp.Compare(a.Tag.Version, b.Tag.Version))
}
