package sidecar

import (
	"cmp"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// Resolve returns the set as a new pod gets it: the current spec, or a former revision. Revisions of other sets are
// ignored. random is drawn for each pod; it decides which share of the pods gets the former revision. The error is
// ErrNoRevision if that is missing, also for a pod that would get the current spec: a wrong pin shows at the first pod.
//
// Resolve restores the revision for each pod. For many pods, call its parts Former, HoldsBack and Restore, and keep the
// restored set.
func Resolve(set *Set, pod *corev1.Pod, revisions []*appsv1.ControllerRevision, random uint32) (*Set, error) {
	former, err := Former(set, revisions)
	if err != nil {
		return nil, err
	}
	held, err := set.HoldsBack(pod, random)
	if err != nil {
		return nil, err
	}
	if !held {
		return set, nil
	}
	return Restore(set, former)
}

// Pinned reports whether new pods may get a former revision of the set, so that Resolve needs the revisions.
func (s *Set) Pinned() bool {
	pin := s.object.Spec.InjectionStrategy.Revision
	return pin != nil && (pin.RevisionName != nil || pin.CustomVersion != nil)
}

// Former returns the revision that the set is pinned to; nil if the set is not pinned. Of one custom version it is the
// newest. The error is ErrNoRevision if that revision is missing.
func Former(set *Set, revisions []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	if !set.Pinned() {
		return nil, nil //nolint:nilnil // nothing to find is no error
	}
	pin := set.object.Spec.InjectionStrategy.Revision
	var found *appsv1.ControllerRevision
	for _, r := range revisions {
		switch {
		case r.Labels[appsv1beta1.SidecarSetNameLabel] != set.Name():
		case pin.RevisionName != nil:
			if r.Name == *pin.RevisionName {
				found = r
			}
		case !isOfVersion(r, *pin.CustomVersion):
		case found == nil || r.Revision > found.Revision || r.Revision == found.Revision && r.Name > found.Name:
			found = r
		}
	}
	var err error
	switch {
	case found != nil:
	case pin.RevisionName != nil:
		err = fieldError(set.object, fieldRevision+".revisionName", fmt.Errorf("%q: %w", *pin.RevisionName, ErrNoRevision))
	default:
		err = fieldError(set.object, fieldRevision+".customVersion", fmt.Errorf("%q: %w", *pin.CustomVersion, ErrNoRevision))
	}
	return found, err
}

// isOfVersion reports whether a revision has a custom version. A revision without one does not have the empty version.
func isOfVersion(r *appsv1.ControllerRevision, version string) bool {
	has, ok := r.Labels[appsv1beta1.SidecarSetCustomVersionLabel]
	return ok && has == version
}

// holdback decides which pods get the former revision.
type holdback struct {
	all      bool
	selected bool
	selector query
	// share of the others, of shareOf.
	share uint64
	fault error // of the percentage
}

func readHoldback(set *appsv1beta1.SidecarSet) holdback {
	update := set.Spec.UpdateStrategy
	if update.Paused || set.Spec.InjectionStrategy.Revision.Policy != appsv1beta1.PartialSidecarSetInjectRevisionPolicy {
		return holdback{all: true}
	}
	var b holdback
	if update.Selector != nil {
		b.selected, b.selector = true, readQuery(update.Selector)
	}
	if update.Partition == nil || update.Partition.Type == intstr.Int {
		return b
	}
	share, err := scale.Amount(*update.Partition, shareOf, scale.RoundUp)
	b.share, b.fault = uint64(min(max(share, 0), shareOf)), err
	return b
}

// shareOf is the whole of which a percentage of new pods is computed: percentages may have a fraction.
const shareOf = 1_000_000_000

// HoldsBack reports whether a new pod gets the former revision of the set instead of the current spec.
func (s *Set) HoldsBack(pod *corev1.Pod, random uint32) (bool, error) {
	b := s.back
	if !s.Pinned() || b.all {
		return s.Pinned(), nil
	}
	if b.selected {
		ok, err := b.selector.matches(pod.Labels)
		if err != nil {
			return false, fieldError(s.object, fieldUpdateSelector, err)
		}
		if !ok {
			return true, nil
		}
	}
	if b.fault != nil {
		return false, fieldError(s.object, fieldPartition, b.fault)
	}
	return uint64(random)*shareOf < b.share<<32, nil
}

// Restore returns the set as the revision has it, with the hashes and the name of the revision. The result depends on
// no pod: keep it as long as the set and the revision do not change.
func Restore(set *Set, r *appsv1.ControllerRevision) (*Set, error) {
	var former struct {
		Spec appsv1beta1.SidecarSetSpec `json:"spec"`
	}
	var values struct {
		Spec map[string]any `json:"spec"`
	}
	if err := cmp.Or(json.Unmarshal(r.Data.Raw, &former), utiljson.Unmarshal(r.Data.Raw, &values)); err != nil {
		return nil, fieldError(set.object, fieldRevision, fmt.Errorf("decode revision %s: %w", r.Name, err))
	}
	now := set.object
	restored := &appsv1beta1.SidecarSet{
		TypeMeta: now.TypeMeta, ObjectMeta: *now.ObjectMeta.DeepCopy(), Status: *now.Status.DeepCopy(),
	}
	restored.Spec = appsv1beta1.SidecarSetSpec{ // what a revision records
		Volumes:          former.Spec.Volumes,
		Containers:       former.Spec.Containers,
		InitContainers:   former.Spec.InitContainers,
		ImagePullSecrets: former.Spec.ImagePullSecrets,
		PatchPodMetadata: former.Spec.PatchPodMetadata,
	}
	restored.Status.LatestRevision = r.Name
	// The hashes of the set are those of its current spec.
	delete(restored.Annotations, kruise.SidecarSetHashKey)
	delete(restored.Annotations, kruise.SidecarSetHashWithoutImageKey)
	for _, key := range []string{kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey} {
		if value := r.Annotations[key]; value != "" {
			annotate(&restored.ObjectMeta, key, value)
		}
	}
	delete(values.Spec, "$patch")
	if err := KeepUnknownFields(restored, values.Spec); err != nil {
		return nil, fmt.Errorf("restore revision %s: %w", r.Name, err)
	}
	s, err := Parse(restored)
	if err != nil {
		return nil, fmt.Errorf("restore revision %s: %w", r.Name, err)
	}
	return s, nil
}

func annotate(m *metav1.ObjectMeta, key, value string) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[key] = value
}
