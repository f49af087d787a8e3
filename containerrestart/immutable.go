package containerrestart

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// CheckUpdate returns the forbidden changes of a request: those of its spec, and of the labels with its pod and its
// node.
func CheckUpdate(was, is *appsv1beta1.ContainerRecreateRequest) field.ErrorList {
	var faults field.ErrorList
	if !equality.Semantic.DeepEqual(was.Spec, is.Spec) {
		faults = append(faults, field.Forbidden(field.NewPath("spec"), "spec of ContainerRecreateRequest is immutable"))
	}
	for _, key := range []string{
		appsv1beta1.ContainerRecreateRequestPodUIDKey, appsv1beta1.ContainerRecreateRequestNodeNameKey,
	} {
		old, had := was.Labels[key]
		if value, has := is.Labels[key]; old != value || had && !has {
			faults = append(faults, field.Forbidden(field.NewPath("metadata", "labels").Key(key), "the label is immutable"))
		}
	}
	return faults
}

// CheckGrace rejects a change of the time at which the pod was made not ready. Call it for updates in v1alpha1 alone:
// there the time is an annotation, which every client that updates metadata could change. In v1beta1 the time is in the
// status, which a client may leave out of its update.
func CheckGrace(was, is *appsv1beta1.ContainerRecreateRequest) field.ErrorList {
	old := conditionOf(was, appsv1beta1.ContainerRecreateRequestPreRecreateGrace)
	if old == nil {
		return nil
	}
	c := conditionOf(is, appsv1beta1.ContainerRecreateRequestPreRecreateGrace)
	if c != nil && sameSecond(c.LastTransitionTime, old.LastTransitionTime) {
		return nil
	}
	at := field.NewPath("metadata", "annotations").Key(appsv1beta1.ContainerRecreateRequestUnreadyAcquiredKey)
	return field.ErrorList{field.Forbidden(at, "the annotation is immutable")}
}

// sameSecond compares times as they are on the wire.
func sameSecond(a, b metav1.Time) bool { return a.Unix() == b.Unix() }
