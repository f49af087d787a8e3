package containerrestart

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// key is the entry of a request among those that keep the pod not ready.
func key(r *request) string { return r.Namespace + "/" + r.Name }

// takeOut makes the pod not ready, if that was asked for, and notes when. The finalizer comes first, so that nothing
// but the request itself can leave the pod so.
func (s *supervisor) takeOut() {
	r := s.Request
	if strategyOf(r).UnreadyGracePeriodSeconds == nil ||
		conditionOf(r, appsv1beta1.ContainerRecreateRequestPreRecreateGrace) != nil {
		return
	}
	hold, err := lifecycle.Gate{}.Hold(s.Pod, kruise.ContainerRecreateRequestUserAgent, key(r), s.Now)
	switch {
	case err != nil:
		s.note(NoteUnreadable, "the pod stays ready: "+err.Error())
	case !lifecycle.HasGate(s.Pod, kruise.KruisePodReadyConditionType):
		s.note(NoteNoGate, "the pod stays ready: it has no readiness gate "+string(kruise.KruisePodReadyConditionType))
	case !slices.Contains(r.Finalizers, appsv1beta1.ContainerRecreateRequestUnreadyAcquiredKey):
		// The rest is for the request with the finalizer.
		s.plan.AddFinalizer, s.status = true, r.Status
		return
	default:
		s.plan.Pod = hold
	}
	s.condition(appsv1beta1.ContainerRecreateRequestPreRecreateGrace, metav1.ConditionTrue,
		appsv1beta1.ContainerRecreateRequestPreRecreateGraceReason,
		appsv1beta1.ContainerRecreateRequestPreRecreateGraceMessage)
}

// putBack lets the pod become ready. A condition that cannot be decoded does not keep the finalizer on the request,
// because waiting would not repair the condition.
func (s *supervisor) putBack() {
	if s.Pod == nil || s.Pod.DeletionTimestamp != nil {
		return
	}
	release, err := lifecycle.Gate{}.Release(s.Pod, kruise.ContainerRecreateRequestUserAgent, key(s.Request), s.Now)
	if err != nil {
		s.note(NoteUnreadable, "the pod may stay not ready: "+err.Error())
	}
	s.plan.Pod = release
}
