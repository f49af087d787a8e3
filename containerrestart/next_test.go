package containerrestart_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
)

const ignore = appsv1beta1.ContainerRecreateRequestFailurePolicyIgnore

// TestNext looks at requests 30 seconds after they were made. A written status is shown whole.
func TestNext(t *testing.T) {
	type work = containerrestart.Work
	type containers = []containerrestart.Container
	old := containers{up("app", 0, -60), up("log", 0, -60)}
	both := in(recreating, st("app", pending, false, ""), st("log", pending, false, ""))
	succeed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	forced := with(strategy{ForceRecreate: true})
	ordered := with(strategy{OrderedRecreate: true})
	done := func(name string, err error) containerrestart.Attempt {
		return containerrestart.Attempt{Request: "r1", Container: name, Done: true, Err: err}
	}
	begun := containerrestart.Attempt{Request: "r1", Container: "app"}
	boom := errors.New("deadline exceeded")
	now := ptr.To(stamp(30))
	status := func(p phase, states ...state) *appsv1beta1.ContainerRecreateRequestStatus {
		s := &appsv1beta1.ContainerRecreateRequestStatus{Phase: p, ContainerRecreateStates: states}
		if p == completed {
			s.CompletionTime = now
		}
		return s
	}
	cases := map[string]nextCase{
		"new": {
			why:   "one write says that it runs, and with which containers",
			work:  work{Request: admitted()},
			write: status(recreating, st("app", pending, false, ""), st("log", pending, false, "")),
		},
		"one at once": {
			why:  "the next waits until the first has stopped",
			work: work{Request: admitted(both)},
			kill: "app",
		},
		"under way": {
			why:   "no container is stopped twice",
			work:  work{Attempts: []containerrestart.Attempt{begun}},
			notes: []string{containerrestart.NoteStopping},
		},
		"under way for another": {
			why:   "never two requests at once, even if the other has ended meanwhile",
			notes: []string{containerrestart.NoteStopping},
			work:  work{Request: admitted(both), Attempts: []containerrestart.Attempt{{Request: "r0", Container: "app"}}},
		},
		"done for another": {
			why: "now it can begin", kill: "app",
			work: work{Attempts: []containerrestart.Attempt{{
				Request: "r0", Container: "app", Done: true,
			}}},
		},
		"stopped": {
			why:   "unordered, the next is stopped while this one starts",
			work:  work{Attempts: []containerrestart.Attempt{done("app", nil)}},
			write: status(recreating, st("app", recreating, true, ""), st("log", pending, false, "")),
		},
		"stopped, and the next": {
			why: "unordered, so it does not wait until the first is up",
			work: work{
				Request:    admitted(in(recreating, st("app", recreating, true, ""), st("log", pending, false, ""))),
				Containers: append(containers{down("app", 0, -60)}, old[1]),
				Attempts:   []containerrestart.Attempt{done("app", nil)},
			},
			kill:  "log",
			notes: []string{containerrestart.NoteStarting},
		},
		"stopped, in order": {
			why: "the next waits until the API server knows that this one is up",
			work: work{
				Request:    admitted(ordered, in(recreating, st("app", recreating, true, ""), st("log", pending, false, ""))),
				Containers: append(containers{up("app", 1, 25)}, old...),
			},
			notes: []string{containerrestart.NoteStarting},
		},
		"stopped, and the runtime does not know it yet": {
			why:   "it said that it stopped the container",
			work:  work{Request: admitted(in(recreating, st("app", recreating, true, ""), st("log", recreating, true, "")))},
			after: 3 * time.Second,
		},

		"up": {
			why:   "it is new, ready, and has run",
			work:  work{Request: admitted(known("app"), both), Containers: append(containers{up("app", 1, 25)}, old...)},
			write: status(recreating, st("app", succeeded, true, ""), st("log", pending, false, "")),
		},
		"up, and unknown to the API server": {
			why: "the snapshot is of another",
			work: work{
				Request:    admitted(known("app"), in(recreating, st("app", recreating, true, ""), st("log", succeeded, true, ""))),
				Containers: containers{up("app", 2, 25)},
			},
			notes: []string{containerrestart.NoteStarting},
		},
		"up for as long as asked": {
			why: "it is to be longer than that",
			work: work{
				Request: admitted(known("app"), with(strategy{MinStartedSeconds: 5}),
					in(recreating, st("app", recreating, true, ""), st("log", succeeded, true, ""))),
				Containers: containers{up("app", 1, 25)},
			},
			after: 100 * time.Millisecond,
			notes: []string{containerrestart.NoteStarting},
		},
		"up for longer": {
			why: "it has run for longer than asked, and nothing is left",
			work: work{
				Request: admitted(known("app"), with(strategy{MinStartedSeconds: 5}),
					in(recreating, st("app", recreating, true, ""), st("log", succeeded, true, ""))),
				Containers: containers{up("app", 1, 24.9)},
			},
			write: status(completed, st("app", succeeded, true, ""), st("log", succeeded, true, "")),
		},
		"restarted by itself": {
			why:   "the container need not be stopped any more",
			work:  work{Request: admitted(both), Containers: containers{up("app", 1, 25), up("log", 0, -60)}},
			write: status(recreating, st("app", recreating, true, ""), st("log", pending, false, "")),
			notes: []string{containerrestart.NoteStarting},
		},
		"restarted in place, with the same ID": {
			why: "the count tells",
			work: work{Request: admitted(both), Containers: func() containers {
				c := up("app", 0, 25)
				c.RestartCount = 1
				return containers{c, old[1]}
			}()},
			write: status(recreating, st("app", recreating, true, ""), st("log", pending, false, "")),
			notes: []string{containerrestart.NoteStarting},
		},
		"started after the request was made": {
			why:  "the time alone proves nothing",
			work: work{Request: admitted(both), Containers: containers{up("app", 0, 5), up("log", 0, 5)}},
			kill: "app",
		},
		"of several the newest counts": {
			why: "past ones stay with the runtime for a while",
			work: work{
				Request:    admitted(in(recreating, st("app", recreating, true, ""), st("log", succeeded, true, ""))),
				Containers: containers{down("app", 0, -60), up("app", 1, 25), down("app", -1, -90)},
			},
			notes: []string{containerrestart.NoteStarting},
		},

		"by force": {
			why:   "which container it is about is written before it is stopped",
			work:  work{Request: admitted(forced, both), Containers: containers{up("app", 3, 25), old[1]}},
			write: status(recreating, st("app", pending, false, "stopping containerd://app-3"), st("log", pending, false, "")),
		},
		"by force, noted": {
			why: "the one that is written down still runs",
			work: work{
				Request: admitted(forced,
					in(recreating, st("app", pending, false, "stopping containerd://app-3"), st("log", pending, false, ""))),
				Containers: containers{up("app", 3, 25), old[1]},
			},
			kill: "app",
		},
		"by force, and the daemon died": {
			why: "exactly once, so the one that runs now is the new one",
			work: work{
				Request: admitted(forced,
					in(recreating, st("app", pending, false, "stopping containerd://app-3"), st("log", pending, false, ""))),
				Containers: containers{up("app", 4, 25), old[1]},
			},
			write: status(recreating, st("app", recreating, true, ""), st("log", pending, false, "stopping containerd://log-0")),
			notes: []string{containerrestart.NoteStarting},
		},
		"by force, the daemon died, and the container is gone": {
			why: "it was stopped; the next one is the new one",
			work: work{
				Containers: containers{},
				Request: admitted(forced,
					in(recreating, st("app", pending, false, "stopping containerd://app-3"), st("log", succeeded, true, ""))),
			},
			write: status(recreating, st("app", pending, true, "not found container on Node"), st("log", succeeded, true, "")),
			notes: []string{containerrestart.NoteNotFound},
		},

		"not there": {
			why: "it may come",
			work: work{
				Request: admitted(in(recreating, st("app", pending, false, "not found container on Node"),
					st("log", pending, false, ""))),
				Containers: old[1:],
			},
			after: 3 * time.Second,
			notes: []string{containerrestart.NoteNotFound},
		},
		"exited": {
			why: "the kubelet starts it again",
			work: work{
				Request:    admitted(in(recreating, st("app", recreating, true, ""), st("log", succeeded, true, ""))),
				Containers: containers{down("app", 0, -60)},
				Pod:        newPod(),
			},
			after: 3 * time.Second,
			notes: []string{containerrestart.NoteStarting},
		},
		"exited, in a pod that has ended": {
			why: "nothing starts it again, and the manager completes the request",
			work: work{
				Request:    admitted(in(recreating, st("app", recreating, true, ""), st("log", succeeded, true, ""))),
				Containers: containers{down("app", 0, -60)},
				Pod:        newPod(succeed),
			},
			notes: []string{containerrestart.NoteStarting},
		},
		"not there, in a pod that has ended": {
			why: "it does not come",
			work: work{
				Request: admitted(in(recreating, st("app", pending, false, "not found container on Node"),
					st("log", pending, false, ""))),
				Containers: old[1:],
				Pod:        newPod(succeed),
			},
			notes: []string{containerrestart.NoteNotFound},
		},
		"gone after it was stopped": {
			why: "the next one has no container yet",
			work: work{
				Containers: containers{},
				Request:    admitted(in(recreating, st("app", recreating, true, ""), st("log", succeeded, true, ""))),
			},
			write: status(recreating, st("app", pending, true, "not found container on Node"), st("log", succeeded, true, "")),
			notes: []string{containerrestart.NoteNotFound},
		},

		"cannot be stopped": {
			why:  "the others stay untouched",
			work: work{Attempts: []containerrestart.Attempt{done("app", boom)}},
			write: status(completed, st("app", failed, false, "kill container error: deadline exceeded"),
				st("log", pending, false, "")),
		},
		"cannot be stopped, ignored": {
			why: "the next is tried",
			work: work{
				Request:  admitted(both, with(strategy{FailurePolicy: ignore})),
				Attempts: []containerrestart.Attempt{done("app", boom)},
			},
			write: status(recreating, st("app", failed, false, "kill container error: deadline exceeded"),
				st("log", pending, false, "")),
		},
		"ignored, and the next": {
			why: "one that failed does not hold up the others",
			work: work{
				Request: admitted(in(recreating, st("app", failed, false, "x"), st("log", pending, false, "")),
					with(strategy{FailurePolicy: ignore})),
			},
			kill: "log",
		},
		"all failed, ignored": {
			why: "there is nothing left to try",
			work: work{
				Request: admitted(in(recreating, st("app", failed, false, "x"), st("log", failed, false, "y")),
					with(strategy{FailurePolicy: ignore})),
			},
			write: status(completed, st("app", failed, false, "x"), st("log", failed, false, "y")),
		},
		"ends again and again": {
			why: "it does not wait for ever",
			work: work{
				Request:    admitted(in(recreating, st("app", recreating, true, ""), st("log", recreating, true, ""))),
				Containers: containers{down("app", 6, 25), up("log", 1, 25)},
			},
			write: status(completed, st("app", failed, true,
				"new container does not stay up: it ended 6 times, the last time with exit code 137 (Error)"),
				st("log", recreating, true, "")),
			notes: []string{containerrestart.NoteStarting},
		},
		"ended a few times": {
			why: "it may yet come up",
			work: work{
				Request:    admitted(in(recreating, st("app", recreating, true, ""), st("log", succeeded, true, ""))),
				Containers: containers{down("app", 5, 25)},
			},
			after: 3 * time.Second,
			notes: []string{containerrestart.NoteStarting},
		},

		"no runtime": {
			why:  "there is no daemon to stop containers",
			work: work{Request: admitted(), NoRuntime: errors.New("not found runtime service for docker in daemon")},
			write: &appsv1beta1.ContainerRecreateRequestStatus{
				Phase: completed, CompletionTime: now,
				Message: "failed to find runtime service: not found runtime service for docker in daemon",
			},
			notes: []string{containerrestart.NoteEnded},
		},
		"behind another": {
			why:   "a pod has one request at a time",
			work:  work{Request: admitted(), Others: []*request{admitted(named("first", -1), in(recreating))}},
			write: status(pending),
			notes: []string{containerrestart.NoteQueued},
		},
		"still behind": {
			why:   "it is written already that it waits",
			work:  work{Request: admitted(in(pending)), Others: []*request{admitted(named("first", -1), in(recreating))}},
			notes: []string{containerrestart.NoteQueued},
		},
		"first now": {
			why: "it does not get stuck",
			work: work{
				Request: admitted(in(pending)),
				Others: []*request{
					admitted(), admitted(named("first", -1), func(r *request) { r.Status.CompletionTime = now }),
				},
			},
			write: status(recreating, st("app", pending, false, ""), st("log", pending, false, "")),
		},
		"no grace yet": {
			why:   "the manager says when it begins",
			work:  work{Request: admitted(in(recreating), with(strategy{UnreadyGracePeriodSeconds: ptr.To[int64](5)}))},
			notes: []string{containerrestart.NoteGrace},
		},
		"in grace": {
			why: "requests in flight end meanwhile",
			work: work{
				Request: admitted(in(recreating), graced(27), with(strategy{UnreadyGracePeriodSeconds: ptr.To[int64](5)})),
			},
			after: 2100 * time.Millisecond,
			notes: []string{containerrestart.NoteGrace},
		},
		"after the grace": {
			why:  "no longer than asked",
			work: work{Request: admitted(both, graced(25), with(strategy{UnreadyGracePeriodSeconds: ptr.To[int64](5)}))},
			kill: "app",
		},

		"ended": {
			why:  "there is nothing to do",
			work: work{Request: admitted(in(completed, st("app", pending, false, "")), done30)},
			do:   containerrestart.DoNothing,
		},
		"ended during a kill": {
			why: "a kill that began is not given up",
			work: work{
				Request:  admitted(in(completed, st("app", pending, false, ""), st("log", pending, false, "")), done30),
				Attempts: []containerrestart.Attempt{begun},
			},
			do: containerrestart.DoNothing,
		},
		"ended before a kill": {
			why: "what became of it is reported, and nothing more is stopped",
			work: work{
				Request:  admitted(in(completed, st("app", pending, false, ""), st("log", pending, false, "")), done30),
				Attempts: []containerrestart.Attempt{done("app", nil)},
			},
			write: status(completed, st("app", recreating, true, ""), st("log", pending, false, "")),
		},
		"told": {
			why: "once",
			work: work{
				Containers: containers{}, Request: admitted(in(completed, st("app", recreating, true, "")), done30),
				Attempts: []containerrestart.Attempt{done("app", nil)},
			},
			do: containerrestart.DoNothing,
		},

		"deleted": {why: "it terminates", work: work{Request: admitted(both, deleting)}, do: containerrestart.DoNothing},
		"deleted during a kill": {
			why:  "it is given up",
			work: work{Request: admitted(both, deleting), Attempts: []containerrestart.Attempt{begun}},
			do:   containerrestart.DoCancel,
		},
		"pod deleted during a kill": {
			why: "the kubelet stops all containers",
			work: work{
				Request:  admitted(both),
				Pod:      newPod(func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(stamp(20)) }),
				Attempts: []containerrestart.Attempt{begun},
			},
			do: containerrestart.DoCancel,
		},
		"another pod deleted": {
			why: "it has nothing to do with the request",
			work: work{
				Request: admitted(both),
				Pod:     newPod(func(p *corev1.Pod) { p.UID, p.DeletionTimestamp = "u2", ptr.To(stamp(20)) }),
			},
			kill: "app",
		},
	}
	checkNext(t, cases)
}
