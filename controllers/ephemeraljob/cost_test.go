package ephemeraljob_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// until runs turns until the job has ended, and returns the requests of the reconciler.
func (m *model) until(j *job) (requests []string) {
	m.Helper()
	for range 500 {
		m.Reconcile()
		requests = append(requests, m.Server.Requests()...)
		if m.Look(j); j.Status.CompletionTime != nil {
			return requests
		}
		m.run()
		m.Server.Requests()
		m.Advance(time.Second)
	}
	m.Fatalf("the job does not end: %s", counters(j))
	return nil
}

func (m *model) idle(when string) {
	m.Helper()
	m.Server.Requests()
	m.Reconcile()
	m.Reconcile()
	if requests := m.Server.Requests(); len(requests) > 0 {
		m.Errorf("%s: an idle pass costs %d requests: %s", when, len(requests), requests[0])
	}
}

// Hundreds of pods cost one write each and few of the status, and none at all while nothing happens.
func TestCost(t *testing.T) {
	const n = 400
	m := newModel(t, "")
	for i := range n {
		m.addPod(fmt.Sprintf("p%04d", i))
	}
	j := m.create(parallelism(100))
	m.Reconcile()
	first := m.Server.Requests()
	m.idle("running")
	requests := append(first, m.until(j)...)
	counted := map[string]int{}
	for _, r := range requests {
		counted[r[strings.LastIndexByte(r, '/')+1:]]++
	}
	// Four rounds, each of which is added, runs and ends; the end of one and the start of the next are one write.
	if diff := cmp.Diff(map[string]int{"ephemeralcontainers 200": n, "status 200": 9, "debug 201": 1},
		counted); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	m.idle("ended")
}

// One pod at a time is the worst case: three writes for each pod, and one for the end.
func TestCostOneByOne(t *testing.T) {
	m := newModel(t, "a b c d e")
	j := m.create()
	m.Server.Requests()
	if requests := m.until(j); len(requests) != 3*5+1 {
		t.Errorf("%d requests for 5 pods: %s", len(requests), strings.Join(requests, ", "))
	}
}

// A cache that lags behind brings no pod a second time to its containers, and lets the job not cross its parallelism.
func TestLaggingCache(t *testing.T) {
	m := newModel(t, "a b c")
	m.ends["a"] = "runs"
	j := m.create()
	m.restart(m.Server.Snapshot())
	m.Server.Requests()
	for range 3 {
		m.Reconcile()
	}
	if diff := cmp.Diff([]string{"PATCH pods/a/ephemeralcontainers 200", "PATCH ephemeraljobs/debug/status 200"},
		m.Server.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	// Another process knows nothing of the write, and its cache does not show the write either.
	stale := m.Server.Snapshot()
	m.change(j, parallelism(2))
	m.run()
	m.deletePod("b")
	m.restart(stale)
	m.Server.Requests()
	for range 3 {
		m.Reconcile()
	}
	if got := m.pod("c").Spec.EphemeralContainers; len(got) > 0 {
		t.Errorf("pod c got containers: %s", m.picture())
	}
	m.restart(m.Server)
	m.Reconcile()
	if got := m.pod("c").Spec.EphemeralContainers; len(got) != 1 || len(m.pod("a").Spec.EphemeralContainers) != 1 {
		t.Errorf("at last: %s", m.picture())
	}
}

// Errors of the API server are retried. The status is written beside them, and the start time with it.
func TestErrors(t *testing.T) {
	m := newModel(t, "a b c")
	j := m.create(parallelism(3), deadline(60))
	m.fault("b", apierrors.NewInternalError(errors.New("no answer")))
	m.Reconcile()
	if m.Look(j); j.Status.StartTime == nil || j.Status.Waiting != 2 || m.Due.IsZero() {
		t.Errorf("%s since %v, next at %v", counters(j), j.Status.StartTime, m.Due)
	}
	m.fault("b", nil)
	m.fault("status", apierrors.NewInternalError(errors.New("no answer")))
	m.Reconcile()
	if m.Due.IsZero() {
		t.Error("a status that was not written is not retried")
	}
	m.fault("status", nil)
	m.Reconcile()
	if m.Look(j); j.Status.Waiting != 3 {
		t.Errorf("at last: %s", counters(j))
	}
}

// A panic for one pod is an error, and the status is written nevertheless.
func TestPanic(t *testing.T) {
	m := newModel(t, "a")
	j := m.create()
	m.fault("a", errBug)
	m.Reconcile()
	if m.Look(j); j.Status.StartTime == nil || j.Status.Waiting != 0 || m.Due.IsZero() {
		t.Errorf("%s, next at %v", counters(j), m.Due)
	}
}

// Refusals are announced, each pod once, and the event names the reason.
func TestRefusalEvents(t *testing.T) {
	m := newModel(t, "a b c")
	j := m.create(parallelism(3))
	m.fault("a", refusal())
	m.fault("c", refusal())
	for range 30 {
		m.turn()
	}
	m.Look(j)
	events := m.Server.Events(j, "CreateFailed")
	if len(events) != 1 || !strings.Contains(events[0].Message, "pod a: ") ||
		!strings.Contains(events[0].Message, "PodSecurity (and 1 more pods)") || events[0].Type != "Warning" {
		t.Errorf("events %+v", events)
	}
	if j.Status.Succeeded != 1 || !strings.Contains(counters(j), "JobFailed CreateFailed") {
		t.Errorf("%s", counters(j))
	}
	m.fault("a", nil)
	m.fault("c", nil)
	m.until(j)
	if events := m.Server.Events(j, "JobSucceeded"); len(events) != 1 || j.Status.Succeeded != 3 {
		t.Errorf("%s, events %v", counters(j), events)
	}
}

// A job whose spec cannot work is an event once, and no other job waits for it.
func TestInvalid(t *testing.T) {
	m := newModel(t, "a")
	bad := m.create(named("bad"), func(j *job) { j.Spec.Selector.MatchLabels["?"] = "" })
	good := m.create()
	for range 5 {
		m.turn()
	}
	m.Look(bad)
	m.Look(good)
	if events := m.Server.Events(bad, "InvalidSpec"); len(events) != 1 || bad.Status.Phase != v1alpha1.EphemeralJobError ||
		good.Status.Phase != v1alpha1.EphemeralJobSucceeded {
		t.Errorf("bad %s with %v, good %s", counters(bad), events, counters(good))
	}
}

// Two jobs with different names of containers add both to a pod. With the same name the second one has no target.
func TestTwoJobs(t *testing.T) {
	m := newModel(t, "a")
	m.ends["a"] = "runs"
	first := m.create()
	second := m.create(named("second"), container("dump"))
	third := m.create(named("third"))
	for range 5 {
		m.turn()
	}
	for _, j := range []*job{first, second, third} {
		m.Look(j)
	}
	if first.Status.Running != 1 || second.Status.Running != 1 || third.Status.Matches != 0 ||
		len(m.pod("a").Spec.EphemeralContainers) != 2 {
		t.Errorf("%s; %s; %s; %s", counters(first), counters(second), counters(third), m.picture())
	}
}

// Jobs as the reference leaves them: with its finalizer, with containers that it has added, and with a status. Beside
// the finalizer nothing is written, and no pod gets a container twice.
func TestTakeover(t *testing.T) {
	started := metav1.NewTime(time.Date(2029, 12, 31, 23, 59, 0, 0, time.UTC))
	condition := func(kind v1alpha1.EphemeralJobConditionType, reason string) v1alpha1.EphemeralJobCondition {
		return v1alpha1.EphemeralJobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastProbeTime: started, LastTransitionTime: started,
		}
	}
	running := v1alpha1.EphemeralJobStatus{
		Phase: v1alpha1.EphemeralJobRunning, Matches: 2, Running: 1, Succeeded: 1, StartTime: &started,
		Conditions: []v1alpha1.EphemeralJobCondition{condition(v1alpha1.EJobInitialized, "Initialized")},
	}
	succeeded := running
	succeeded.Phase, succeeded.Running, succeeded.Succeeded, succeeded.CompletionTime = v1alpha1.EphemeralJobSucceeded, 0,
		2, &started
	for name, c := range map[string]struct {
		status v1alpha1.EphemeralJobStatus
		want   []string
	}{
		"one that goes on":   {running, []string{"PATCH ephemeraljobs/debug 200"}},
		"one that has ended": {succeeded, []string{"PATCH ephemeraljobs/debug 200"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, "a b")
			j := m.create(finalizer)
			j.Status = c.status
			m.Put(j)
			for name, state := range map[string]corev1.ContainerState{
				"a": {Terminated: &corev1.ContainerStateTerminated{FinishedAt: started}},
				"b": {Running: &corev1.ContainerStateRunning{StartedAt: started}},
			} {
				pod := m.pod(name)
				mark := corev1.EnvVar{Name: kruise.EphemeralContainerEnvKey, Value: string(j.UID)}
				pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{
					{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
						Name: "shell", Image: "busybox:1", Env: []corev1.EnvVar{mark},
					}},
				}
				pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "shell", State: state}}
				m.Put(pod)
			}
			m.Server.Requests()
			m.Reconcile()
			m.Reconcile()
			if diff := cmp.Diff(c.want, m.Server.Requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if m.Look(j); slices.Contains(j.Finalizers, v1alpha1.EphemeralJobFinalizerKey) {
				t.Error("the finalizer stays")
			}
		})
	}
}

// A finalizer of another controller stays.
func TestOtherFinalizer(t *testing.T) {
	m := newModel(t, "")
	j := m.create(finalizer, func(j *job) { j.Finalizers = append(j.Finalizers, "example.com/other") })
	m.Reconcile()
	if m.Look(j); !slices.Equal(j.Finalizers, []string{"example.com/other"}) {
		t.Errorf("finalizers %v", j.Finalizers)
	}
}

// A job is deleted only once its finalizer is gone, or the deletion would wait for another manager.
func TestDeletionAfterFinalizer(t *testing.T) {
	m := newModel(t, "")
	j := m.create(finalizer)
	j.Status.CompletionTime = &metav1.Time{Time: m.Now().Add(-time.Hour)}
	m.Put(j)
	m.Server.Requests()
	m.fault("finalizers", apierrors.NewInternalError(errors.New("no answer")))
	m.Reconcile()
	if requests := m.Server.Requests(); len(requests) > 0 || m.Due.IsZero() {
		t.Errorf("requests %v, next at %v", requests, m.Due)
	}
	m.fault("finalizers", nil)
	m.Reconcile()
	want := []string{"PATCH ephemeraljobs/debug 200", "DELETE ephemeraljobs/debug 200"}
	if diff := cmp.Diff(want, m.Server.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// A job that is gone is forgotten, and the reconciler handles another job of its name like a new one.
func TestAgain(t *testing.T) {
	m := newModel(t, "a")
	m.fault("a", refusal())
	j := m.create()
	m.turn()
	if err := m.Server.Delete(context.Background(), j, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	m.fault("a", nil)
	if _, err := m.Reconciler.Reconcile(t.Context(), request(j)); err != nil {
		t.Fatal(err)
	}
	j = m.create()
	if m.until(j); j.Status.Succeeded != 1 || len(m.pod("a").Spec.EphemeralContainers) != 1 {
		t.Errorf("%s; %s", counters(j), m.picture())
	}
}
