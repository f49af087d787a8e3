package containerrestart_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
)

const (
	ended1     = `{"metadata":{"resourceVersion":"5","uid":"r1"},"status":{"completionTime":"2026-11-21T12:00:30Z","message":`
	noResponse = ended1 + `"daemon has not responded for a long time","phase":"Completed"}}`
	deadline   = ended1 + `"recreating has exceeded the activeDeadlineSeconds","phase":"Completed"}}`
	tooMany    = ended1 + `"more than 99 requests of the pod are before this one","phase":"Completed"}}`
	podEnded   = ended1 + `"pod has ended","phase":"Completed"}}`
	gone       = ended1 + `"pod has gone","phase":"Completed"}}`
	takenOut   = `{"metadata":{"resourceVersion":"5","uid":"r1"},"status":{"conditions":[{"type":"PreRecreateGrace","status":"True","lastTransitionTime":"2026-11-21T12:00:30Z","reason":"PreRecreateGrace","message":"Pod has been forced to not-ready for unreadyGracePeriodSeconds drain"}]}}`
)

// otherPod makes a request one of another pod.
func otherPod(r *request) { r.Labels[appsv1beta1.ContainerRecreateRequestPodUIDKey] = "other" }

// TestSupervise looks at requests 30 seconds after most were made: how they end without an answer, what is noted of
// new containers, and how a pod leaves traffic and comes back.
func TestSupervise(t *testing.T) {
	limit := func(seconds int64) func(*request) {
		return func(r *request) { r.Spec.ActiveDeadlineSeconds = &seconds }
	}
	ttl := func(seconds int32) func(*request) {
		return func(r *request) { r.Spec.TTLSecondsAfterFinished = &seconds }
	}
	inactive := func(r *request) { delete(r.Labels, activeLabel) }
	held := func(r *request) { r.Finalizers = []string{"other", finalizer} }
	old := func(r *request) { r.CreationTimestamp = stamp(-40) }
	mark := func(status metav1.ConditionStatus, seconds float64) func(*request) {
		return func(r *request) {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
				Type: containerrestart.InTurn, Status: status, LastTransitionTime: stamp(seconds),
			})
		}
	}
	over := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Phase = phase
			for i := range p.Status.ContainerStatuses {
				p.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
			}
		}
	}
	unready := with(strategy{UnreadyGracePeriodSeconds: ptr.To[int64](5)})
	noGate := func(p *corev1.Pod) { p.Spec.ReadinessGates = nil }
	message := func(status corev1.ConditionStatus, text string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Conditions[2].Status, p.Status.Conditions[2].Message = status, text }
	}
	const ours = `[{"userAgent":"ContainerRecreateRequest","key":"shop/again"}]`
	cases := map[string]struct {
		why      string
		request  *request
		pod      *corev1.Pod // newPod if left out
		noPod    bool
		others   []*request
		write    string
		finalize string // + adds, - removes the finalizer
		pods     string // the conditions of the pod, as type=status message
		inactive bool
		delete   bool
		after    time.Duration
		notes    []string
	}{
		"new":       {why: "the daemon has a minute", request: admitted(), after: 30 * time.Second},
		"no daemon": {why: "no daemon answers", request: admitted(old), write: noResponse},
		"no daemon, and a deadline that has passed": {
			why:     "the first reason counts",
			request: admitted(old, limit(3)),
			write:   noResponse,
		},
		"deadline to come": {why: "the sooner of two", request: admitted(limit(40)), after: 10 * time.Second},
		"deadline has come": {
			why:     "it counts from the creation",
			request: admitted(limit(30), in(recreating)),
			write:   deadline,
		},
		"deadline of one that waits": {
			why:     "it holds for these too",
			request: admitted(limit(30), in(pending)),
			others:  []*request{admitted(named("first", -5), in(recreating))},
			write:   deadline,
		},
		"absurd deadline": {why: "no overflow", request: admitted(limit(1<<62), in(recreating)), after: 3 * time.Second},
		"one of too many": {
			why:     "a tenant cannot keep a node busy with the requests of one pod",
			request: admitted(),
			others:  queue(100),
			write:   tooMany,
		},
		"the last of as many as may wait": {
			why: "the limit is inclusive", request: admitted(), others: queue(99), after: 30 * time.Second,
		},
		"one that runs before too many": {
			why:     "it has its turn already",
			request: admitted(in(recreating)),
			others:  queue(100),
			after:   3 * time.Second,
		},
		"too many of another pod": {
			why:     "they delay no request of this one",
			request: admitted(),
			others:  queue(100, otherPod),
			after:   30 * time.Second,
		},
		"no pod": {
			noPod:   true,
			why:     "there is nothing left to restart",
			request: admitted(in(recreating)),
			write:   gone,
		},
		"another pod": {
			why:     "it only has the same name",
			request: admitted(),
			pod:     newPod(func(p *corev1.Pod) { p.UID = "u2" }),
			write:   gone,
		},
		"pod is deleted": {
			why:     "it is as good as gone",
			request: admitted(in(pending)),
			pod:     newPod(func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(stamp(1)) }),
			write:   gone,
		},

		"pod has ended": {
			why:     "no container starts again",
			request: admitted(in(recreating)),
			pod:     newPod(over("Succeeded")),
			write:   podEnded,
		},
		"pod has ended without a status": {
			why:     "an evicted pod has none",
			request: admitted(in(recreating)),
			pod:     newPod(over("Failed"), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }),
			write:   podEnded,
		},
		"recreating, pod Succeeded": {
			why:     "a sidecar that still runs is stopped, and the next event is its end",
			request: admitted(in(recreating)),
			pod:     newPod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
			after:   0,
		},
		"containers ended, pod still runs": {
			why:     "the kubelet may start them again",
			request: admitted(in(recreating)),
			pod:     newPod(over("Running")),
			after:   3 * time.Second,
		},

		"waits for another": {
			why:     "there is no limit to that",
			request: admitted(old, in(pending)),
			others:  []*request{admitted(named("first", -50), in(recreating))},
			notes:   []string{containerrestart.NoteQueued},
		},
		"first for a while": {
			why:     "it is marked, for the daemon may have seen it a moment ago",
			request: admitted(old, in(pending)),
			after:   time.Minute,
			write:   `{"metadata":{"resourceVersion":"5","uid":"r1"},"status":{"conditions":[{"type":"InTurn","status":"True","lastTransitionTime":"2026-11-21T12:00:30Z","reason":"First","message":"No other request of the pod is before this one"}]}}`,
		},
		"marked": {why: "a minute more", request: admitted(old, in(pending), mark("True", 0)), after: 30 * time.Second},
		"marked, and not seen": {
			why:     "never stuck in Pending",
			request: admitted(old, in(pending), mark("True", -30)),
			write:   noResponse,
		},
		"marked, and overtaken": {
			why:     "the mark counts no more",
			request: admitted(old, in(pending), mark("True", -30)),
			others:  []*request{admitted(named("first", 5), in(recreating))},
			notes:   []string{containerrestart.NoteQueued},
			write:   `{"metadata":{"resourceVersion":"5","uid":"r1"},"status":{"conditions":[{"type":"InTurn","status":"False","lastTransitionTime":"2026-11-21T12:00:30Z","reason":"Waits","message":"Another request of the pod is before this one"}]}}`,
		},

		"nothing new yet": {
			why:     "what ran before the request is not new",
			request: admitted(in(recreating)),
			after:   3 * time.Second,
		},
		"a new container": {
			why:     "the snapshot has the new ID",
			request: admitted(in(recreating)),
			pod:     newPod(func(p *corev1.Pod) { p.Status.ContainerStatuses[0] = running("app", 1, 20) }),
			after:   3 * time.Second,
			write:   `{"metadata":{"resourceVersion":"5","uid":"r1"},"status":{"containerStatusSnapshot":[{"name":"app","ready":true,"restartCount":1,"containerID":"containerd://app-1"}]}}`,
		},
		"started in the second of the request": {
			why:     "not before is enough",
			request: admitted(in(recreating)),
			pod:     newPod(func(p *corev1.Pod) { p.Status.ContainerStatuses[1] = running("log", 0, 0) }),
			after:   3 * time.Second,
			write:   `{"metadata":{"resourceVersion":"5","uid":"r1"},"status":{"containerStatusSnapshot":[{"name":"log","ready":true,"restartCount":0,"containerID":"containerd://log-0"}]}}`,
		},
		"a native sidecar": {
			why:     "its status is elsewhere",
			request: admitted(in(recreating), func(r *request) { r.Spec.Containers[1].Name = "mesh" }),
			after:   3 * time.Second,
			pod:     newPod(func(p *corev1.Pod) { p.Status.InitContainerStatuses[0] = running("mesh", 1, 20) }),
			write:   `{"metadata":{"resourceVersion":"5","uid":"r1"},"status":{"containerStatusSnapshot":[{"name":"mesh","ready":true,"restartCount":1,"containerID":"containerd://mesh-1"}]}}`,
		},
		"known already": {
			why:     "nothing to write",
			request: admitted(in(recreating), known("app")),
			pod:     newPod(func(p *corev1.Pod) { p.Status.ContainerStatuses[0] = running("app", 1, 20) }),
			after:   3 * time.Second,
		},
		"it ended again": {
			why:     "the last that was known stays",
			request: admitted(in(recreating), known("app")),
			after:   3 * time.Second,
		},

		"out of traffic": {
			why:      "the finalizer first, or nobody might put the pod back",
			request:  admitted(in(recreating), unready),
			pod:      newPod(func(p *corev1.Pod) { p.Status.ContainerStatuses[0] = running("app", 1, 20) }),
			after:    3 * time.Second,
			finalize: "+",
		},
		"out of traffic, with the finalizer": {
			why:     "then the pod, then the time",
			request: admitted(in(recreating), unready, held),
			after:   3 * time.Second,
			pods:    "KruisePodReady=False " + ours + "; Ready=False readiness gate \"KruisePodReady\" is False",
			write:   takenOut,
		},
		"out of traffic, without the condition": {
			why:     "a pod that the kubelet has just started has none",
			request: admitted(in(recreating), unready, held),
			pod:     newPod(func(p *corev1.Pod) { p.Status.Conditions = p.Status.Conditions[:2] }),
			after:   3 * time.Second,
			pods:    "KruisePodReady=False " + ours + "; Ready=False readiness gate \"KruisePodReady\" is False",
			write:   takenOut,
		},
		"out of traffic, half done": {
			why:     "what is written is not written again",
			request: admitted(in(recreating), unready, held),
			pod:     newPod(message("False", ours)),
			after:   3 * time.Second,
			write:   takenOut,
		},
		"out of traffic already": {
			why:     "the time is not pushed forward",
			request: admitted(in(recreating), unready, held, graced(3)),
			after:   3 * time.Second,
		},
		"another condition": {
			why: "it says nothing of traffic", request: admitted(in(recreating), unready, held, graced(3), func(r *request) {
				r.Status.Conditions[0].Type = "Other"
			}), pod: newPod(message("False", ours)), after: 3 * time.Second,
			write: `{"metadata":{"resourceVersion":"5","uid":"r1"},"status":{"conditions":[{"type":"Other","status":"True","lastTransitionTime":"2026-11-21T12:00:03Z","reason":"","message":""},{"type":"PreRecreateGrace","status":"True","lastTransitionTime":"2026-11-21T12:00:30Z","reason":"PreRecreateGrace","message":"Pod has been forced to not-ready for unreadyGracePeriodSeconds drain"}]}}`,
		},
		"condition is False": {
			why: "as good as none",
			request: admitted(in(recreating), unready, held, graced(3), func(r *request) {
				r.Status.Conditions[0].Status = "False"
			}),
			pod:   newPod(message("False", ours)),
			after: 3 * time.Second,
			write: takenOut,
		},
		"no gate": {
			why:     "it only waits",
			request: admitted(in(recreating), unready),
			pod:     newPod(noGate),
			after:   3 * time.Second,
			write:   takenOut,
			notes:   []string{containerrestart.NoteNoGate},
		},
		"foreign message": {
			why:     "it is not written over",
			request: admitted(in(recreating), unready),
			pod:     newPod(message("False", "busy")),
			after:   3 * time.Second,
			write:   takenOut,
			notes:   []string{containerrestart.NoteUnreadable},
		},
		"grace while it waits": {
			why:     "the pod stays ready until its turn",
			request: admitted(in(pending), unready),
			after:   30 * time.Second,
		},

		"ended": {why: "the daemon is done", request: admitted(done(20)), inactive: true},
		"ended, out of traffic": {
			why:      "the pod is put back first",
			request:  admitted(done(20), held),
			pod:      newPod(message("False", ours)),
			pods:     "KruisePodReady=True []",
			finalize: "-",
			inactive: true,
		},
		"ended, another holds it": {
			why:     "the other keeps it out",
			request: admitted(done(20), held),
			pod: newPod(message("False",
				`[{"userAgent":"ContainerRecreateRequest","key":"shop/again"},{"userAgent":"x","key":"y"}]`)),
			pods:     `KruisePodReady=False [{"userAgent":"x","key":"y"}]`,
			finalize: "-",
			inactive: true,
		},
		"ended, foreign message": {
			why:      "the request must not stay for ever",
			request:  admitted(done(20), held),
			pod:      newPod(message("False", "busy")),
			finalize: "-",
			inactive: true,
			notes:    []string{containerrestart.NoteUnreadable},
		},
		"ended, pod is gone": {
			why: "nothing to put back", request: admitted(done(20), held), noPod: true, finalize: "-", inactive: true,
		},
		"ended at no time": {
			why:     "its time to live has to begin",
			request: admitted(in(completed), inactive, ttl(5)),
			after:   5 * time.Second,
			write:   `{"metadata":{"resourceVersion":"5","uid":"r1"},"status":{"completionTime":"2026-11-21T12:00:30Z"}}`,
		},
		"over": {why: "without a time to live it stays", request: admitted(done(20), inactive)},
		"to live on": {
			why:     "for the rest of its time",
			request: admitted(done(20), inactive, ttl(15)),
			after:   5 * time.Second,
		},
		"lived":   {why: "its time is over", request: admitted(done(20), inactive, ttl(10)), delete: true},
		"deleted": {why: "nothing was done to the pod", request: admitted(deleting)},
		"deleted, out of traffic": {
			why:      "the label is of no matter any more",
			request:  admitted(deleting, held, in(recreating)),
			pod:      newPod(message("False", ours)),
			pods:     "KruisePodReady=True []",
			finalize: "-",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.pod == nil && !tc.noPod {
				tc.pod = newPod()
			}
			if strings.HasPrefix(tc.write, ended1) {
				tc.notes = []string{containerrestart.NoteEnded}
			}
			input := containerrestart.Input{Request: tc.request, Pod: tc.pod, Others: tc.others, Now: at(30)}
			before := text(input)
			plan := containerrestart.Supervise(input)
			if text(input) != before {
				t.Error("the input was changed")
			}
			type outcome struct {
				Write, Finalize, Pods string
				Inactive, Delete      bool
				After                 time.Duration
				Notes                 []string
			}
			got := outcome{
				Write:    patch(t, plan.Write),
				Inactive: plan.RemoveActive,
				Delete:   plan.Delete,
				After:    plan.RequeueAfter,
				Notes:    codes(plan.Notes),
			}
			if plan.AddFinalizer {
				got.Finalize += "+"
			}
			if plan.RemoveFinalizer {
				got.Finalize += "-"
			}
			for i, c := range changes(tc.pod, patched(tc.pod, plan.Pod)) {
				if i > 0 {
					got.Pods += "; "
				}
				got.Pods += string(c.Type) + "=" + string(c.Status) + " " + c.Message
			}
			want := outcome{tc.write, tc.finalize, tc.pods, tc.inactive, tc.delete, tc.after, tc.notes}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
			if empty := want.Write == "" && want.Finalize == "" && want.Pods == "" && !want.Inactive &&
				!want.Delete; empty != plan.Empty() {
				t.Errorf("Empty() = %v", plan.Empty())
			}
		})
	}
}
