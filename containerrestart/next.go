package containerrestart

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// graceSlack is added to the grace period, whose beginning is known to the second only.
const graceSlack = 100 * time.Millisecond

// Work is a request as the daemon on the pod's node sees it.
type Work struct {
	// Request to look at.
	Request *appsv1beta1.ContainerRecreateRequest
	// Others are requests that may be for the same pod. The request itself, and those of other pods, do not matter.
	Others []*appsv1beta1.ContainerRecreateRequest
	// Pod of the request; nil where the daemon does not see pods, or sees one of another UID.
	Pod *corev1.Pod
	// PodIP is the IP of the sandbox. Next uses it where Pod is nil or has no IP.
	PodIP string
	// Containers of the pod that the runtime has, in any order.
	Containers []Container
	// NoRuntime is why they are not known: the error of RuntimeOf.
	NoRuntime error
	// Attempts are the kills in this pod that this process has begun; it keeps them until their request is gone. Those of
	// another process, which died, are not needed.
	Attempts []Attempt
	// Now is the time of the decision.
	Now time.Time
}

// Attempt is a kill that was begun.
type Attempt struct {
	// Request is the UID of the request that it is for.
	Request types.UID
	// Container is its name.
	Container string
	// Done says that it has ended. Err is why the container could not be stopped.
	Done bool
	Err  error
}

// Verdict says what to do about a request.
type Verdict string

const (
	// DoWrite asks to write the status, and to look again.
	DoWrite Verdict = "Write"
	// DoKill asks to stop a container. The daemon looks again as soon as the attempt has begun, and when it has ended.
	DoKill Verdict = "Kill"
	// DoCancel asks to cancel the attempts of the request that are not done, because the request or its pod is being
	// deleted. The daemon also cancels the attempts of a request that does not exist any more, without a call of Next.
	DoCancel Verdict = "Cancel"
	// DoWait asks to look again when the request or its pod change, and at the latest after a time.
	DoWait Verdict = "Wait"
	// DoNothing says that the request has ended.
	DoNothing Verdict = "Done"
)

// Action is what the daemon does about a request.
type Action struct {
	// Verdict says which of the other fields matter.
	Verdict Verdict
	// Write is the change of the request's status, for DoWrite.
	Write *write.Write
	// Kill is the container to stop, for DoKill.
	Kill *Kill
	// After is when to look again at the latest, for DoWait; 0 for when something changes.
	After time.Duration
	// Notes say why.
	Notes []note.Note
}

// Next returns what the daemon on the node does about a request: one thing, after which Next is called again. All that
// has to be remembered is in the request, so that a daemon can die at any time. Several requests of one pod can be
// asked about in any order: all but the first wait.
func Next(w Work) Action {
	s := &stepper{Work: w, status: *w.Request.Status.DeepCopy(), strategy: strategyOf(w.Request)}
	switch {
	case w.Request.DeletionTimestamp != nil,
		w.Pod != nil && w.Pod.UID == podOf(w.Request) && w.Pod.DeletionTimestamp != nil:
		return s.cancel()
	case ended(w.Request):
		s.addLate()
	default:
		s.proceed()
	}
	switch change := writeOf(w.Request, s.status, ended(w.Request)); {
	case change != nil:
		s.action.Verdict, s.action.Write, s.action.Kill, s.action.After = DoWrite, change, nil, 0
	case ended(w.Request):
		s.action.Verdict = DoNothing
	case s.action.Kill != nil:
		s.action.Verdict, s.action.After = DoKill, 0
	default:
		s.action.Verdict = DoWait
	}
	return s.action
}

type stepper struct {
	Work
	status   appsv1beta1.ContainerRecreateRequestStatus
	strategy *appsv1beta1.ContainerRecreateRequestStrategy
	action   Action
}

func (s *stepper) note(code, text string) {
	s.action.Notes = append(s.action.Notes, newNote(code, s.Request.Name, text))
}

// wake looks again after a time, or sooner.
func (s *stepper) wake(after time.Duration) {
	if s.action.After == 0 || after < s.action.After {
		s.action.After = after
	}
}

func (s *stepper) complete(message string) {
	now := metav1.NewTime(s.Now)
	s.status.Phase, s.status.CompletionTime, s.status.Message = appsv1beta1.ContainerRecreateRequestCompleted, &now,
		message
	s.action.Kill = nil
	if message != "" {
		s.note(NoteEnded, message)
	}
}

// cancel gives up what is under way.
func (s *stepper) cancel() Action {
	for _, a := range s.Attempts {
		if a.Request == s.Request.UID && !a.Done {
			return Action{Verdict: DoCancel}
		}
	}
	return Action{Verdict: DoNothing}
}

// addLate adds the results of kills that were running when the request ended.
func (s *stepper) addLate() {
	for i := range s.status.ContainerRecreateStates {
		st := &s.status.ContainerRecreateStates[i]
		if a := s.attempt(st.Name); a != nil && a.Done && st.Phase == appsv1beta1.ContainerRecreateRequestPending {
			*st = resultOf(*st, a)
		}
	}
}

// proceed does what comes next for a request that has not ended.
func (s *stepper) proceed() {
	if first := before(s.Request, s.Others); first != nil {
		if s.status.Phase == "" {
			s.status.Phase = appsv1beta1.ContainerRecreateRequestPending
		}
		s.note(NoteQueued, "waits for "+first.Name)
		return
	}
	s.status.Phase = appsv1beta1.ContainerRecreateRequestRecreating
	if s.inGrace() {
		s.note(NoteGrace, "waits while the pod leaves traffic")
		return
	}
	if s.NoRuntime != nil {
		s.complete(messageNoRuntime + s.NoRuntime.Error())
		return
	}
	s.status.ContainerRecreateStates = make([]state, len(s.Request.Spec.Containers))
	for i := range s.Request.Spec.Containers {
		s.status.ContainerRecreateStates[i] = s.observe(&s.Request.Spec.Containers[i])
	}
	s.walk()
}

// inGrace says whether the pod is to be out of traffic for longer.
func (s *stepper) inGrace() bool {
	if s.strategy.UnreadyGracePeriodSeconds == nil {
		return false
	}
	began := conditionOf(s.Request, appsv1beta1.ContainerRecreateRequestPreRecreateGrace)
	if began == nil {
		return true // until the manager sets the condition
	}
	left := secondsOf(*s.strategy.UnreadyGracePeriodSeconds) - s.Now.Sub(began.LastTransitionTime.Time)
	if left <= 0 {
		return false
	}
	s.wake(left + graceSlack)
	return true
}

// walk goes through the containers in their order and chooses the one to stop now. The next one is stopped when that
// has stopped.
func (s *stepper) walk() {
	done := true
	for i := range s.status.ContainerRecreateStates {
		st := &s.status.ContainerRecreateStates[i]
		switch st.Phase {
		case appsv1beta1.ContainerRecreateRequestSucceeded:
		case appsv1beta1.ContainerRecreateRequestFailed:
			if s.strategy.FailurePolicy != appsv1beta1.ContainerRecreateRequestFailurePolicyIgnore {
				s.complete("")
				return
			}
		case appsv1beta1.ContainerRecreateRequestRecreating:
			st.IsKilled, done = true, false
			if s.strategy.OrderedRecreate {
				return
			}
		default:
			s.stop(i)
			return
		}
	}
	if done {
		s.complete("")
	}
}

// stop chooses a container to stop, unless one is being stopped.
func (s *stepper) stop(i int) {
	st, c := &s.status.ContainerRecreateStates[i], newest(s.Containers, s.Request.Spec.Containers[i].Name)
	switch {
	case s.attempt(st.Name) != nil:
		s.note(NoteStopping, "waits for container "+st.Name+" to stop")
		return
	case c == nil:
		return
	case slices.ContainsFunc(s.Attempts, func(a Attempt) bool { return a.Request != s.Request.UID && !a.Done }):
		s.note(NoteStopping, "waits for a container to stop that an earlier request is about")
		return
	case s.strategy.ForceRecreate:
		// After a restart, the daemon must recognise a container with another ID as the new one.
		st.Message = stopping + c.ID
	}
	s.action.Kill = s.kill(&s.Request.Spec.Containers[i], c)
}

// kill is how a container of the request is stopped. Hooks come from the pod where it is seen: not all fit in the
// request.
func (s *stepper) kill(c *appsv1beta1.ContainerRecreateRequestContainer, running *Container) *Kill {
	k := &Kill{
		Container: c.Name, ContainerID: running.ID, Grace: usualGrace * time.Second,
		Text: "Stopping container " + c.Name + " by ContainerRecreateRequest " + s.Request.Name,
	}
	if g := s.strategy.TerminationGracePeriodSeconds; g != nil {
		k.Grace = secondsOf(*g)
	}
	if k.Grace == 0 {
		return k
	}
	var handler *corev1.LifecycleHandler
	ports, ip := c.Ports, s.PodIP
	if c.PreStop != nil {
		handler = &corev1.LifecycleHandler{Exec: c.PreStop.Exec, HTTPGet: c.PreStop.HTTPGet, TCPSocket: c.PreStop.TCPSocket}
	}
	if s.Pod != nil && s.Pod.UID == podOf(s.Request) {
		if s.Pod.Status.PodIP != "" {
			ip = s.Pod.Status.PodIP
		}
		if live := containerOf(s.Pod, c.Name); live != nil && live.Lifecycle != nil && live.Lifecycle.PreStop != nil {
			handler, ports = live.Lifecycle.PreStop, live.Ports
		}
	}
	k.Hook = hookOf(handler, ports, ip)
	return k
}

func (s *stepper) attempt(container string) *Attempt {
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Request == s.Request.UID && a.Container == container {
			return a
		}
	}
	return nil
}
