package sidecar

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
)

// Pinned says whether Resolve needs the revisions of a set, because new pods get a former one of it.
func Pinned(set *appsv1beta1.SidecarSet) bool {
	pin := set.Spec.InjectionStrategy.Revision
	return pin != nil && (pin.RevisionName != nil || pin.CustomVersion != nil)
}

// Resolve gives the set as a new pod gets it: as it is, or as a former revision has it. Of the revisions those of other
// sets do not count. Random is drawn anew for each pod; it decides where a share of the pods gets the former revision. It is
// ErrNoRevision where that is not there, whether or not this pod would have got it: a set whose pin is wrong shows it at
// the first pod.
func Resolve(set *appsv1beta1.SidecarSet, pod *corev1.Pod, revisions []*appsv1.ControllerRevision, random uint32) (*appsv1beta1.SidecarSet, error) {
	if !Pinned(set) {
		return set, nil
	}
	former, err := pinned(set, revisions)
	if err != nil {
		return nil, fmt.Errorf("resolve sidecarset %s: %w", set.Name, err)
	}
	getsFormer, err := heldBack(set, pod, random)
	if err != nil {
		return nil, fmt.Errorf("resolve sidecarset %s: %w", set.Name, err)
	}
	if !getsFormer {
		return set, nil
	}
	restored, err := restore(set, former)
	if err != nil {
		return nil, fmt.Errorf("restore revision %s of sidecarset %s: %w", former.Name, set.Name, err)
	}
	return restored, nil
}

// pinned is the revision that the set names. Of one custom version it is the newest.
func pinned(set *appsv1beta1.SidecarSet, revisions []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	pin := set.Spec.InjectionStrategy.Revision
	var found *appsv1.ControllerRevision
	for _, r := range revisions {
		switch {
		case r.Labels[appsv1beta1.SidecarSetNameLabel] != set.Name:
		case pin.RevisionName != nil:
			if r.Name == *pin.RevisionName {
				found = r
			}
		case r.Labels[appsv1beta1.SidecarSetCustomVersionLabel] != *pin.CustomVersion:
		case found == nil || r.Revision > found.Revision || r.Revision == found.Revision && r.Name > found.Name:
			found = r
		}
	}
	switch {
	case found != nil:
		return found, nil
	case pin.RevisionName != nil:
		return nil, fmt.Errorf("revision %q: %w", *pin.RevisionName, ErrNoRevision)
	default:
		return nil, fmt.Errorf("custom version %q: %w", *pin.CustomVersion, ErrNoRevision)
	}
}

// heldBack says whether a pod gets the pinned revision rather than the current one.
func heldBack(set *appsv1beta1.SidecarSet, pod *corev1.Pod, random uint32) (bool, error) {
	update := set.Spec.UpdateStrategy
	if update.Paused || set.Spec.InjectionStrategy.Revision.Policy != appsv1beta1.PartialSidecarSetInjectRevisionPolicy {
		return true, nil
	}
	if update.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(update.Selector)
		if err != nil {
			return false, fmt.Errorf("parse updateStrategy.selector: %w", err)
		}
		if !selector.Matches(labels.Set(pod.Labels)) {
			return true, nil
		}
	}
	if update.Partition == nil || update.Partition.Type == intstr.Int {
		return false, nil
	}
	percent, err := intstr.GetScaledValueFromIntOrPercent(update.Partition, 100, true)
	if err != nil {
		return false, fmt.Errorf("parse updateStrategy.partition: %w", err)
	}
	percent = min(max(percent, 0), 100)
	return uint64(random)*100 < uint64(percent)<<32, nil
}

// restore gives the set as the revision has it, under the hashes and the name of the revision.
func restore(set *appsv1beta1.SidecarSet, r *appsv1.ControllerRevision) (*appsv1beta1.SidecarSet, error) {
	var former struct {
		Spec appsv1beta1.SidecarSetSpec `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &former); err != nil {
		return nil, fmt.Errorf("decode data: %w", err)
	}
	restored := &appsv1beta1.SidecarSet{TypeMeta: set.TypeMeta, ObjectMeta: *set.ObjectMeta.DeepCopy(), Status: *set.Status.DeepCopy()}
	restored.Spec = appsv1beta1.SidecarSetSpec{ // what a revision records
		Volumes:          former.Spec.Volumes,
		Containers:       former.Spec.Containers,
		InitContainers:   former.Spec.InitContainers,
		ImagePullSecrets: former.Spec.ImagePullSecrets,
		PatchPodMetadata: former.Spec.PatchPodMetadata,
	}
	restored.Status.LatestRevision = r.Name
	// Those of the set are of its current spec.
	delete(restored.Annotations, pub.SidecarSetHashKey)
	delete(restored.Annotations, pub.SidecarSetHashWithoutImageKey)
	for _, key := range []string{pub.SidecarSetHashKey, pub.SidecarSetHashWithoutImageKey} {
		if value := r.Annotations[key]; value != "" {
			annotate(&restored.ObjectMeta, key, value)
		}
	}
	return restored, nil
}

func annotate(m *metav1.ObjectMeta, key, value string) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[key] = value
}
