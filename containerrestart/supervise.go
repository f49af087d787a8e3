package containerrestart

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// patience is how long a daemon may take to answer.
	patience = time.Minute
	// pollEvery is how often is looked where events may come late.
	pollEvery = 3 * time.Second
)

// The messages of requests that end early.
const (
	messageGone       = "pod has gone"
	messageOver       = "pod has ended"
	messageNoResponse = "daemon has not responded for a long time"
	messageDeadline   = "recreating has exceeded the activeDeadlineSeconds"
	messageTooMany    = "more than 99 requests of the pod are before this one"
	messageNoRuntime  = "failed to find runtime service: "
)

// InTurn is the condition of a request that has waited for others, and now is the first. From its lastTransitionTime
// on, the daemon has as long to begin as with a new one.
const InTurn = "InTurn"

const (
	inTurnReason  = "First"
	inTurnMessage = "No other request of the pod is before this one"
	waitsReason   = "Waits"
	waitsMessage  = "Another request of the pod is before this one"
)

// Input is a request as the manager sees it.
type Input struct {
	// Request to look at.
	Request *appsv1beta1.ContainerRecreateRequest
	// Pod of the name in the request; nil when there is none.
	Pod *corev1.Pod
	// Others are requests that may be for the same pod. The request itself, and those of other pods, do not matter.
	Others []*appsv1beta1.ContainerRecreateRequest
	// Now is the time of the decision.
	Now time.Time
}

// Plan is what the manager does about a request: all of it, in the order of the fields. When one fails, the rest waits
// for the next plan.
type Plan struct {
	// AddFinalizer puts the finalizer ContainerRecreateRequestUnreadyAcquiredKey on the request. Nothing else is planned
	// with it.
	AddFinalizer bool
	// Pod is the write of the pod's status that takes it out of traffic or puts it back; nil for none. It tests what it
	// was decided upon.
	Pod *write.Write
	// Write is the change of the request's status; nil for none.
	Write *write.Write
	// RemoveFinalizer takes the finalizer off again, and RemoveActive the label ContainerRecreateRequestActiveKey.
	RemoveFinalizer, RemoveActive bool
	// Delete the request.
	Delete bool
	// RequeueAfter is when the plan may change although nothing else does; 0 for never.
	RequeueAfter time.Duration
	// Notes say why.
	Notes []note.Note
}

// Empty says that there is nothing to do now.
func (p Plan) Empty() bool {
	return !p.AddFinalizer && p.Pod == nil && p.Write == nil && !p.RemoveFinalizer && !p.RemoveActive && !p.Delete
}

// Supervise returns what the manager does about a request. The manager enforces its time limits, takes the pod out of
// traffic and puts it back, and cleans up. A request whose pod has ended, with its containers, is completed. It also
// copies the state of new containers from the pod into the request, for the daemon.
func Supervise(in Input) Plan {
	s := &supervisor{Input: in, status: *in.Request.Status.DeepCopy()}
	r := in.Request
	switch {
	case r.DeletionTimestamp != nil || ended(r):
		s.clean()
	case in.Pod == nil || in.Pod.DeletionTimestamp != nil || in.Pod.UID != podOf(r):
		s.complete(messageGone)
	case outnumbered(r, in.Others):
		s.complete(messageTooMany)
	case isOver(r, in.Pod):
		s.complete(messageOver)
	case s.late():
		s.complete(messageNoResponse)
	case r.Spec.ActiveDeadlineSeconds != nil && s.due(r.CreationTimestamp, secondsOf(*r.Spec.ActiveDeadlineSeconds)):
		s.complete(messageDeadline)
	case r.Status.Phase == appsv1beta1.ContainerRecreateRequestRecreating:
		s.snapshot()
		if !hasEnded(in.Pod) { // else no container starts, and the end of one is an event
			s.requeue(pollEvery)
		}
		s.takeOut()
	}
	s.plan.Write = writeOf(r, s.status, false)
	return s.plan
}

// hasEnded reports whether a pod starts no container again.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isOver reports whether a pod has ended and runs no container of a request. The sidecars of a pod that has ended may
// still run.
func isOver(r *appsv1beta1.ContainerRecreateRequest, pod *corev1.Pod) bool {
	return hasEnded(pod) &&
		!slices.ContainsFunc(r.Spec.Containers, func(c appsv1beta1.ContainerRecreateRequestContainer) bool {
			status := statusOf(pod, c.Name)
			return status != nil && status.State.Running != nil
		})
}

type supervisor struct {
	Input
	status appsv1beta1.ContainerRecreateRequestStatus
	plan   Plan
}

func (s *supervisor) note(code, text string) {
	s.plan.Notes = append(s.plan.Notes, newNote(code, s.Request.Name, text))
}

func (s *supervisor) requeue(after time.Duration) {
	if s.plan.RequeueAfter == 0 || after < s.plan.RequeueAfter {
		s.plan.RequeueAfter = after
	}
}

// due reports whether a time has passed. If the time has not passed, due requeues the request for then.
func (s *supervisor) due(since metav1.Time, after time.Duration) bool {
	passed := s.Now.Sub(since.Time)
	if passed >= after {
		return true
	}
	s.requeue(after - passed)
	return false
}

func (s *supervisor) complete(message string) {
	completed := metav1.NewTime(s.Now)
	s.status = *s.Request.Status.DeepCopy()
	s.status.Phase, s.status.CompletionTime, s.status.Message = appsv1beta1.ContainerRecreateRequestCompleted, &completed,
		message
	s.plan = Plan{}
	if message != "" {
		s.note(NoteEnded, message)
	}
}

// clean undoes what was done to the pod, and removes what has ended.
func (s *supervisor) clean() {
	r := s.Request
	if slices.Contains(r.Finalizers, appsv1beta1.ContainerRecreateRequestUnreadyAcquiredKey) {
		s.putBack()
		s.plan.RemoveFinalizer = true
	}
	if r.DeletionTimestamp != nil {
		return
	}
	if r.Status.CompletionTime == nil {
		now := metav1.NewTime(s.Now)
		s.status.CompletionTime = &now
	}
	if _, s.plan.RemoveActive = r.Labels[appsv1beta1.ContainerRecreateRequestActiveKey]; s.plan.RemoveActive {
		return
	}
	if ttl := r.Spec.TTLSecondsAfterFinished; ttl != nil {
		s.plan.Delete = s.due(*s.status.CompletionTime, secondsOf(int64(*ttl)))
	}
}

// late says whether the daemon should have begun with the request by now.
func (s *supervisor) late() bool {
	switch r := s.Request; r.Status.Phase {
	case appsv1beta1.ContainerRecreateRequestRecreating:
		return false
	case "":
		return s.due(r.CreationTimestamp, patience)
	}
	// The request does not record since when it is the first. A request that looks late is therefore marked InTurn, and is
	// late only when the same time has passed once more.
	mark := conditionOf(s.Request, InTurn)
	if first := before(s.Request, s.Others); first != nil {
		s.note(NoteQueued, "waits for "+first.Name)
		if mark != nil {
			s.condition(InTurn, metav1.ConditionFalse, waitsReason, waitsMessage)
		}
		return false
	}
	if mark != nil {
		return s.due(mark.LastTransitionTime, patience)
	}
	if s.due(s.Request.CreationTimestamp, patience) {
		s.condition(InTurn, metav1.ConditionTrue, inTurnReason, inTurnMessage)
		s.requeue(patience)
	}
	return false
}

func (s *supervisor) condition(conditionType string, status metav1.ConditionStatus, reason, message string) {
	s.status.Conditions = withCondition(s.status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, LastTransitionTime: metav1.NewTime(s.Now), Reason: reason, Message: message,
	})
}

// snapshot notes which new containers the API server knows. A container that is gone again stays noted until the next.
func (s *supervisor) snapshot() {
	var known []appsv1beta1.ContainerRecreateRequestSyncContainerStatus
	for i := range s.Request.Spec.Containers {
		status := statusOf(s.Pod, s.Request.Spec.Containers[i].Name)
		if status == nil || status.State.Running == nil ||
			status.State.Running.StartedAt.Before(&s.Request.CreationTimestamp) {
			continue
		}
		known = append(known, appsv1beta1.ContainerRecreateRequestSyncContainerStatus{
			Name: status.Name, Ready: status.Ready, RestartCount: status.RestartCount, ContainerID: status.ContainerID,
		})
	}
	if len(known) > 0 {
		s.status.ContainerStatusSnapshot = known
	}
}
