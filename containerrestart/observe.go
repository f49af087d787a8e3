package containerrestart

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// The messages of containers.
const (
	messageNotFound = "not found container on Node"
	messageKill     = "kill container error: "
	// stopping is followed by the ID of the container that is stopped by force.
	stopping = "stopping "
)

// crashes is how often a new container may end before the request stops waiting for it. By then the kubelet takes
// minutes between two restarts.
const crashes = 5

// resultOf is what became of a container that was stopped, or could not be.
func resultOf(st state, a *Attempt) state {
	if a.Err != nil {
		st.Phase, st.Message = appsv1beta1.ContainerRecreateRequestFailed, messageKill+a.Err.Error()
		return st
	}
	st.Phase, st.Message, st.IsKilled = appsv1beta1.ContainerRecreateRequestRecreating, "", true
	return st
}

// observe is how far a container of the request is.
func (s *stepper) observe(c *appsv1beta1.ContainerRecreateRequestContainer) state {
	last, now := s.previous(c.Name), newest(s.Containers, c.Name)
	if last.Phase == appsv1beta1.ContainerRecreateRequestFailed ||
		last.Phase == appsv1beta1.ContainerRecreateRequestSucceeded {
		return last
	}
	st := state{Name: c.Name, Phase: appsv1beta1.ContainerRecreateRequestPending, IsKilled: last.IsKilled}
	switch a := s.attempt(c.Name); {
	case a == nil:
		// A daemon before us may have stopped it by force.
		id, begun := strings.CutPrefix(last.Message, stopping)
		st.IsKilled = st.IsKilled || begun && (now == nil || now.ID != id)
	case !a.Done:
		st.Message = last.Message
		return st
	case a.Err != nil:
		return resultOf(st, a)
	default:
		st = resultOf(st, a)
	}
	switch {
	case now == nil:
		s.note(NoteNotFound, "waits for container "+c.Name+", which the runtime does not have")
		s.poll()
		st.Phase, st.Message = appsv1beta1.ContainerRecreateRequestPending, messageNotFound
	case now.State == StateExited:
		s.poll()
		return s.exited(st, c, now)
	case s.strategy.ForceRecreate && !st.IsKilled:
	case isNew(c, now):
		return s.started(st, now)
	case st.IsKilled:
		// The runtime says that it stopped the container; it is not asked again.
		s.wake(pollEvery)
		st.Phase = appsv1beta1.ContainerRecreateRequestRecreating
	}
	return st
}

// poll looks again soon for a container that the kubelet starts; the kubelet starts none in a pod that has ended.
func (s *stepper) poll() {
	if s.Pod == nil || s.Pod.UID != podOf(s.Request) || !hasEnded(s.Pod) {
		s.wake(pollEvery)
	}
}

// previous is the state of a container as the request has it.
func (s *stepper) previous(container string) state {
	all := s.Request.Status.ContainerRecreateStates
	if i := slices.IndexFunc(all, func(st state) bool { return st.Name == container }); i >= 0 {
		return all[i]
	}
	return state{}
}

// isNew says whether a container started after the one that the request was made for.
func isNew(c *appsv1beta1.ContainerRecreateRequestContainer, now *Container) bool {
	was := c.StatusContext
	return was != nil && (was.ContainerID != now.ID || was.RestartCount < now.RestartCount)
}

// exited waits for the kubelet to start the next container, up to a point.
func (s *stepper) exited(st state, c *appsv1beta1.ContainerRecreateRequestContainer, now *Container) state {
	st.Phase, st.Message = appsv1beta1.ContainerRecreateRequestRecreating, ""
	if again := again(c, now); again >= crashes {
		st.Phase, st.IsKilled = appsv1beta1.ContainerRecreateRequestFailed, true
		st.Message = fmt.Sprintf("new container does not stay up: it ended %d times, the last time with exit code %d",
			again+1, now.ExitCode)
		if now.Reason != "" {
			st.Message += " (" + now.Reason + ")"
		}
		return st
	}
	s.note(NoteStarting, "waits for container "+c.Name+" to start again")
	return st
}

// again is how often the new container was started again.
func again(c *appsv1beta1.ContainerRecreateRequestContainer, now *Container) int64 {
	if c.StatusContext == nil {
		return 0
	}
	return int64(now.RestartCount) - int64(c.StatusContext.RestartCount) - 1
}

// started says whether a new container is up: the API server knows it as ready, and it has run for long enough.
func (s *stepper) started(st state, now *Container) state {
	st.Phase, st.Message = appsv1beta1.ContainerRecreateRequestRecreating, ""
	known := slices.ContainsFunc(s.status.ContainerStatusSnapshot,
		func(c appsv1beta1.ContainerRecreateRequestSyncContainerStatus) bool {
			return c.Name == st.Name && c.ContainerID == now.ID && c.Ready
		})
	if !known {
		s.note(NoteStarting, "waits for container "+st.Name+" to be ready")
		return st
	}
	left := time.Duration(s.strategy.MinStartedSeconds)*time.Second - s.Now.Sub(now.Started)
	if left >= 0 {
		s.note(NoteStarting,
			fmt.Sprintf("waits until container %s has run for %d seconds", st.Name, s.strategy.MinStartedSeconds))
		s.wake(left + graceSlack)
		return st
	}
	// Whether we stopped the one before is not always known. It did stop.
	st.Phase, st.IsKilled = appsv1beta1.ContainerRecreateRequestSucceeded, true
	return st
}
