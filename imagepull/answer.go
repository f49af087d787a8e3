package imagepull

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// The messages of pulls that ran out of time.
const (
	noAnswerText = "node has not responded for a long time"
	overdueText  = "pulling exceeds the activeDeadlineSeconds"
)

// answer ends the pulls whose node has not reported for too long, or has not been ready for too long.
func (k *keeper) answer() {
	status := k.Image.Status.DeepCopy()
	changed := false
	for _, name := range slices.Sorted(maps.Keys(k.Image.Spec.Images)) {
		image := status.ImageStatuses[name]
		for _, t := range k.Image.Spec.Images[name].Tags {
			message := k.overdue(Reference{Name: name, Tag: t.Tag}, t)
			if message == "" {
				continue
			}
			k.plan.Failures = append(k.plan.Failures, Failure{
				Reference: Reference{Name: name, Tag: t.Tag}, Owners: slices.Clone(t.OwnerReferences), Message: message,
			})
			k.note(NoteNoAnswer, Reference{Name: name, Tag: t.Tag}.String(), message)
			image.Tags = failed(image.Tags, t, metav1.NewTime(k.Now), message)
			if status.ImageStatuses == nil {
				status.ImageStatuses = map[string]v1beta1.ImageStatus{}
			}
			status.ImageStatuses[name] = image
			changed = true
		}
		changed = sortStatuses(image.Tags) || changed
	}
	if changed {
		tally(status, k.Image.Spec.Images)
		k.plan.Status, k.plan.RequeueAfter = status, 0
	}
}

// overdue is why a pull ends without an answer, or empty while there is time.
func (k *keeper) overdue(ref Reference, t v1beta1.ImageTagSpec) string {
	status := statusOf(k.Image, ref)
	if status == nil || status.Version != t.Version {
		left := t.CreatedAt.Add(k.Answer).Sub(k.Now)
		if left <= 0 {
			return noAnswerText
		}
		k.wait(left)
		return ""
	}
	if status.CompletionTime != nil {
		return ""
	}
	if t.PullPolicy != nil && t.PullPolicy.ActiveDeadlineSeconds != nil {
		left := t.CreatedAt.Add(seconds(*t.PullPolicy.ActiveDeadlineSeconds)).Add(k.Answer).Sub(k.Now)
		if left <= 0 {
			return overdueText
		}
		k.wait(left)
	}
	if since := k.notReadySince(); !since.IsZero() {
		if t.CreatedAt.After(since) { // a pull that was asked for since then gets as long
			since = t.CreatedAt.Time
		}
		left := since.Add(k.Answer).Sub(k.Now)
		if left <= 0 {
			return noAnswerText
		}
		k.wait(left)
	}
	return ""
}

// notReadySince is when the node stopped being ready; zero for a node that is ready, and where there is none.
func (k *keeper) notReadySince() time.Time {
	if k.Node == nil {
		return time.Time{}
	}
	for _, c := range k.Node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// failed is a list of statuses in which the tag failed at its version. What is known of this version otherwise stays.
func failed(
	all []v1beta1.ImageTagStatus, t v1beta1.ImageTagSpec, now metav1.Time, message string,
) []v1beta1.ImageTagStatus {
	s := v1beta1.ImageTagStatus{Tag: t.Tag, Version: t.Version}
	at := statusAt(all, t.Tag)
	if at < 0 {
		at, all = len(all), append(all, s)
	}
	if all[at].Version == t.Version {
		s = all[at]
	}
	s.Phase, s.CompletionTime, s.Message = v1beta1.ImagePhaseFailed, ptr.To(now), message
	all[at] = s
	return all
}

// sortStatuses says whether there was anything to sort.
func sortStatuses(tags []v1beta1.ImageTagStatus) bool {
	byTag := func(a, b v1beta1.ImageTagStatus) int { return strings.Compare(a.Tag, b.Tag) }
	if slices.IsSortedFunc(tags, byTag) {
		return false
	}
	slices.SortStableFunc(tags, byTag)
	return true
}

// tally drops the statuses of what is not listed, and counts the rest.
func tally(s *v1beta1.NodeImageStatus, listed map[string]v1beta1.ImageSpec) {
	s.Desired, s.Succeeded, s.Failed, s.Pulling, s.Waiting = 0, 0, 0, 0, 0
	kept := map[string]v1beta1.ImageStatus{}
	for name, image := range listed {
		s.Desired += int32(len(image.Tags))
		tags := slices.DeleteFunc(s.ImageStatuses[name].Tags, func(t v1beta1.ImageTagStatus) bool {
			return tagAt(image.Tags, t.Tag) < 0
		})
		if len(tags) == 0 {
			continue
		}
		kept[name] = v1beta1.ImageStatus{Tags: tags}
		for _, t := range tags {
			switch t.Phase {
			case v1beta1.ImagePhaseSucceeded:
				s.Succeeded++
			case v1beta1.ImagePhaseFailed:
				s.Failed++
			case v1beta1.ImagePhasePulling:
				s.Pulling++
			default:
				s.Waiting++
			}
		}
	}
	s.ImageStatuses = nil
	if len(kept) > 0 {
		s.ImageStatuses = kept
	}
}
