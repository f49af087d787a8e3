// Package history decides what the ControllerRevisions of a SidecarSet contain, and which of them are kept.
//
// A revision contains what a set injects, as a patch of the set. [Encode] writes the bytes that the reference writes,
// since the names of revisions derive from them; [Same] compares what two revisions mean, so that another encoding is
// no new revision.
//
// Laws: [Surplus] never returns the newest revision, one that pods have, nor one to which the set is pinned.
package history

import (
	"bytes"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/revision"
)

// content is the part of a set that a revision contains.
type content struct {
	Volumes          []corev1.Volume                          `json:"volumes"`
	Containers       []appsv1beta1.SidecarContainer           `json:"containers"`
	InitContainers   []appsv1beta1.SidecarContainer           `json:"initContainers"`
	ImagePullSecrets []corev1.LocalObjectReference            `json:"imagePullSecrets"`
	PatchPodMetadata []appsv1beta1.SidecarSetPatchPodMetadata `json:"patchPodMetadata"`
}

// Encode returns the data of a revision: a patch that replaces the spec, with its keys in the order in which the
// reference writes them.
func Encode(set *appsv1beta1.SidecarSet) ([]byte, error) {
	data, err := json.Marshal(content{
		Volumes: set.Spec.Volumes, Containers: set.Spec.Containers, InitContainers: set.Spec.InitContainers,
		ImagePullSecrets: set.Spec.ImagePullSecrets, PatchPodMetadata: set.Spec.PatchPodMetadata,
	})
	if err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	spec := map[string]any{}
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	for key, value := range spec {
		if list, ok := value.([]any); ok && len(list) == 0 {
			spec[key] = nil // an empty list is none, however it was written
		}
	}
	revision.AddUnknownFields(spec, set.Annotations[revision.UnknownFieldsKey], set.Spec)
	spec["$patch"] = "replace"
	if data, err = json.Marshal(map[string]any{"spec": spec}); err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	return data, nil
}

// Same reports whether two revisions hold the same, however it was printed. What cannot be read is the same as nothing
// else.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, unknownOfX, okX := decode(a)
	y, unknownOfY, okY := decode(b)
	return okX && okY && unknownOfX == unknownOfY && apiequality.Semantic.DeepEqual(x, y)
}

// decode returns the content of a revision, and the fields that its types lack.
func decode(data []byte) (spec content, unknownFields string, ok bool) {
	var known struct {
		Spec content `json:"spec"`
	}
	var values struct {
		Spec map[string]any `json:"spec"`
	}
	if json.Unmarshal(data, &known) != nil || utiljson.Unmarshal(data, &values) != nil {
		return known.Spec, "", false
	}
	delete(values.Spec, "$patch")
	unknownFields, err := revision.UnknownFields(values.Spec, appsv1beta1.SidecarSetSpec{})
	return known.Spec, unknownFields, err == nil
}

// Surplus returns the revisions to delete, the oldest first: those beyond the limit of the set that are not in use. The
// given revisions are sorted, the oldest first. newest is the name of the one that the set is now, onPods are those
// that pods have.
func Surplus(
	set *appsv1beta1.SidecarSet, revisions []*appsv1.ControllerRevision, newest string, onPods []string,
) []*appsv1.ControllerRevision {
	limit := ptr.Deref(set.Spec.RevisionHistoryLimit, appsv1beta1.DefaultSidecarSetRevisionHistoryLimit)
	inUse := sets.New(onPods...).Insert(newest, pinned(set, revisions))
	var surplus []*appsv1.ControllerRevision
	for _, rev := range revisions {
		if len(revisions)-len(surplus) <= max(1, int(limit)) {
			break
		}
		if !inUse.Has(rev.Name) {
			surplus = append(surplus, rev)
		}
	}
	return surplus
}

// pinned is the name of the revision to which a set pins its injection; empty for none.
func pinned(set *appsv1beta1.SidecarSet, revisions []*appsv1.ControllerRevision) (name string) {
	pin := set.Spec.InjectionStrategy.Revision
	switch {
	case pin == nil:
	case pin.RevisionName != nil:
		return *pin.RevisionName
	case pin.CustomVersion != nil:
		for _, rev := range revisions { // the newest of the version
			if rev.Labels[appsv1beta1.SidecarSetCustomVersionLabel] == *pin.CustomVersion {
				name = rev.Name
			}
		}
	}
	return name
}
