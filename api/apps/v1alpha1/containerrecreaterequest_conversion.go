package v1alpha1

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with r.
func (r *ContainerRecreateRequest) ConvertTo(hub *v1beta1.ContainerRecreateRequest) error {
	return roundtrip.Up(r, hub, containerRecreateRequestUp, containerRecreateRequestDown)
}

// ConvertFrom fills r with hub.
func (r *ContainerRecreateRequest) ConvertFrom(hub *v1beta1.ContainerRecreateRequest) error {
	return roundtrip.Down(hub, r, containerRecreateRequestUp, containerRecreateRequestDown)
}

func containerRecreateRequestUp(r *ContainerRecreateRequest, hub *v1beta1.ContainerRecreateRequest) {
	hub.ObjectMeta = r.ObjectMeta
	hub.Annotations = roundtrip.WithKey(hub.Annotations, ContainerRecreateRequestSyncContainerStatusesKey, "")
	hub.Annotations = roundtrip.WithKey(hub.Annotations, ContainerRecreateRequestUnreadyAcquiredKey, "")
	hub.Spec = v1beta1.ContainerRecreateRequestSpec{
		PodName:                 r.Spec.PodName,
		Containers:              r.Spec.Containers,
		ActiveDeadlineSeconds:   r.Spec.ActiveDeadlineSeconds,
		TTLSecondsAfterFinished: r.Spec.TTLSecondsAfterFinished,
	}
	if s := r.Spec.Strategy; s != nil {
		hub.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{
			FailurePolicy:                 v1beta1.ContainerRecreateRequestFailurePolicyType(s.FailurePolicy),
			OrderedRecreate:               s.OrderedRecreate,
			ForceRecreate:                 s.ForceRecreate,
			TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds,
			UnreadyGracePeriodSeconds:     s.UnreadyGracePeriodSeconds,
			MinStartedSeconds:             s.MinStartedSeconds,
		}
	}
	hub.Status = v1beta1.ContainerRecreateRequestStatus{
		Phase:                   v1beta1.ContainerRecreateRequestPhase(r.Status.Phase),
		CompletionTime:          r.Status.CompletionTime,
		Message:                 r.Status.Message,
		ContainerStatusSnapshot: snapshotUp(r.Annotations[ContainerRecreateRequestSyncContainerStatusesKey]),
		Conditions:              graceUp(r.Annotations[ContainerRecreateRequestUnreadyAcquiredKey]),
	}
	for _, s := range r.Status.ContainerRecreateStates {
		hub.Status.ContainerRecreateStates = append(hub.Status.ContainerRecreateStates,
			v1beta1.ContainerRecreateRequestContainerRecreateState{
				Name:     s.Name,
				Phase:    v1beta1.ContainerRecreateRequestPhase(s.Phase),
				Message:  s.Message,
				IsKilled: s.IsKilled,
			})
	}
}

func containerRecreateRequestDown(hub *v1beta1.ContainerRecreateRequest, r *ContainerRecreateRequest) {
	r.ObjectMeta = hub.ObjectMeta
	r.Annotations = roundtrip.WithKey(r.Annotations, ContainerRecreateRequestSyncContainerStatusesKey,
		snapshotDown(hub.Status.ContainerStatusSnapshot))
	r.Annotations = roundtrip.WithKey(r.Annotations, ContainerRecreateRequestUnreadyAcquiredKey,
		graceDown(hub.Status.Conditions))
	r.Spec = ContainerRecreateRequestSpec{
		PodName:                 hub.Spec.PodName,
		Containers:              hub.Spec.Containers,
		ActiveDeadlineSeconds:   hub.Spec.ActiveDeadlineSeconds,
		TTLSecondsAfterFinished: hub.Spec.TTLSecondsAfterFinished,
	}
	if s := hub.Spec.Strategy; s != nil {
		r.Spec.Strategy = &ContainerRecreateRequestStrategy{
			FailurePolicy:                 ContainerRecreateRequestFailurePolicyType(s.FailurePolicy),
			OrderedRecreate:               s.OrderedRecreate,
			ForceRecreate:                 s.ForceRecreate,
			TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds,
			UnreadyGracePeriodSeconds:     s.UnreadyGracePeriodSeconds,
			MinStartedSeconds:             s.MinStartedSeconds,
		}
	}
	r.Status = ContainerRecreateRequestStatus{
		Phase:          ContainerRecreateRequestPhase(hub.Status.Phase),
		CompletionTime: hub.Status.CompletionTime,
		Message:        hub.Status.Message,
	}
	for _, s := range hub.Status.ContainerRecreateStates {
		r.Status.ContainerRecreateStates = append(r.Status.ContainerRecreateStates,
			ContainerRecreateRequestContainerRecreateState{
				Name:     s.Name,
				Phase:    ContainerRecreateRequestPhase(s.Phase),
				Message:  s.Message,
				IsKilled: s.IsKilled,
			})
	}
}

// snapshotUp reads the annotation with the containers that started; what is no such list is as good as absent.
func snapshotUp(text string) []v1beta1.ContainerRecreateRequestSyncContainerStatus {
	var snapshot []v1beta1.ContainerRecreateRequestSyncContainerStatus
	if err := json.Unmarshal([]byte(text), &snapshot); err != nil {
		return nil
	}
	return snapshot
}

// snapshotDown is the annotation for snapshot, empty when there is none.
func snapshotDown(snapshot []v1beta1.ContainerRecreateRequestSyncContainerStatus) string {
	if len(snapshot) == 0 {
		return ""
	}
	text, err := json.Marshal(snapshot)
	if err != nil {
		return ""
	}
	return string(text)
}

// graceUp reads the annotation with the time when the pod was made not ready; what is no time is as good as absent.
func graceUp(text string) []metav1.Condition {
	since, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return []metav1.Condition{{
		Type:               v1beta1.ContainerRecreateRequestPreRecreateGrace,
		Status:             metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(since),
		Reason:             v1beta1.ContainerRecreateRequestPreRecreateGraceReason,
		Message:            v1beta1.ContainerRecreateRequestPreRecreateGraceMessage,
	}}
}

// graceDown is the annotation for conditions, empty when none says that the pod was made not ready.
func graceDown(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Type == v1beta1.ContainerRecreateRequestPreRecreateGrace && c.Status == metav1.ConditionTrue {
			return c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
	}
	return ""
}
