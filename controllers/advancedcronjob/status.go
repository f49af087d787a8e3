package advancedcronjob

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// statusOf returns the status of an object whose children are these, and whose last tick is this one.
func statusOf(s *snapshot, children []child, last time.Time) v1beta1.AdvancedCronJobStatus {
	status := v1beta1.AdvancedCronJobStatus{Type: s.kind.name, LastScheduleTime: s.job.Status.LastScheduleTime}
	if recorded := status.LastScheduleTime; !last.IsZero() && (recorded == nil || !recorded.Time.Equal(last)) {
		status.LastScheduleTime = &metav1.Time{Time: last}
	}
	listed := map[types.UID]corev1.ObjectReference{}
	for _, ref := range s.job.Status.Active {
		listed[ref.UID] = ref
	}
	for _, c := range activeOf(children) {
		if len(status.Active) == maxActive {
			break
		}
		ref, known := listed[c.GetUID()]
		if !known {
			ref = reference(c)
		}
		// A child whose resource version alone has changed is not written again.
		status.Active = append(status.Active, ref)
	}
	return status
}

func reference(c child) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: c.GetAPIVersion(), Kind: c.GetKind(), Namespace: c.GetNamespace(), Name: c.GetName(), UID: c.GetUID(), ResourceVersion: c.GetResourceVersion(),
	}
}

// finished returns the children that the stored status lists as active, and that have ended.
func finished(s *snapshot) []child {
	return slices.DeleteFunc(slices.Clone(s.children), func(c child) bool {
		return c.state == active || !slices.ContainsFunc(s.job.Status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == c.GetUID() })
	})
}
