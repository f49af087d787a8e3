package broadcastjob_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// reconcileOnce reconciles the job, and returns the requests.
func (m *model) reconcileOnce(job *v1beta1.BroadcastJob) ([]string, error) {
	m.Helper()
	m.Server.Requests()
	_, err := m.Reconciler.Reconcile(m.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(job)})
	return m.Server.Requests(), err
}

func (m *model) events(job *v1beta1.BroadcastJob, reason string) []string {
	var all []string
	for _, e := range m.Server.Events(job, reason) {
		all = append(all, e.Type+" "+e.Message)
	}
	return all
}

// A creation that is rejected holds up the rest, and is one event.
func TestFailedCreate(t *testing.T) {
	m := newModel(t, "a b c d e f", broadcastjob.Options{})
	job := m.create()
	asked := 0
	m.restart(podbench.Writes(m.Server, func(what string, write func() error) error {
		if strings.HasPrefix(what, "create/") {
			asked++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "check", errors.New("exceeded quota"))
		}
		return write()
	}))
	if _, err := m.reconcileOnce(job); err == nil || asked != 1 {
		t.Errorf("%d pods were tried, error %v", asked, err)
	}
	m.Look(job)
	if got := m.events(job, "FailedCreate"); len(got) != 1 ||
		!strings.Contains(got[0], "Warning Error creating: create pod check-") ||
		!strings.Contains(got[0], "exceeded quota") {
		t.Errorf("events %q", got)
	}
	if got := counters(job); got != "running: desired 6, active 0, succeeded 0, failed 0" {
		t.Errorf("status %s", got)
	}
}

// The end of a job is stored before its pods are deleted for it: nothing is deleted where it is not.
func TestEndIsStoredFirst(t *testing.T) {
	m := newModel(t, "a b", broadcastjob.Options{})
	m.ends["a"], m.ends["b"] = "failed", "runs"
	job := m.create()
	for range 3 {
		m.Reconcile()
		m.run()
	}
	down := true
	m.restart(podbench.Writes(m.Server, func(what string, write func() error) error {
		if down && what == "status/check" {
			return apierrors.NewInternalError(errors.New("no answer"))
		}
		return write()
	}))
	if requests, err := m.reconcileOnce(job); err == nil || len(requests) > 0 || len(m.events(job, "FailedPodFound")) > 0 {
		t.Errorf("requests %q, error %v", requests, err)
	}
	down = false
	requests, err := m.reconcileOnce(job)
	if want := []string{
		"PATCH broadcastjobs/check/status 200", "DELETE pods/" + broadcastjob.PodName(job, "b") + " 200",
	}; err != nil || !slices.Equal(requests, want) {
		t.Errorf("requests %q, want %q, %v", requests, want, err)
	}
}

// A pod that has changed since it was observed may have ended, and is not deleted.
func TestChangedPodStays(t *testing.T) {
	m := newModel(t, "a", broadcastjob.Options{})
	m.ends["a"] = "runs"
	job := m.create()
	m.turn()
	m.turn()
	m.node("a", evict)
	m.restart(podbench.Writes(m.Server, func(what string, write func() error) error {
		if strings.HasPrefix(what, "delete/") {
			return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "check", errors.New("version"))
		}
		return write()
	}))
	if _, err := m.reconcileOnce(job); err != nil || len(m.events(job, "FailedDelete")) > 0 {
		t.Errorf("error %v, events %v", err, m.events(job, "FailedDelete"))
	}
	if m.Look(job); job.Status.Active != 1 {
		t.Error(counters(job))
	}
}

// In a namespace that is being deleted a rejected creation is no event.
func TestNamespaceTerminating(t *testing.T) {
	m := newModel(t, "a", broadcastjob.Options{})
	job := m.create()
	m.restart(podbench.Writes(m.Server, func(what string, write func() error) error {
		if !strings.HasPrefix(what, "create/") {
			return write()
		}
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "check",
			errors.New("the namespace is being terminated"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return err
	}))
	if _, err := m.reconcileOnce(job); err == nil || len(m.events(job, "FailedCreate")) > 0 {
		t.Errorf("error %v, events %q", err, m.events(job, "FailedCreate"))
	}
}

// A pod of another owner that has the name of a pod of the job holds up no other node.
func TestNameTaken(t *testing.T) {
	m := newModel(t, "a b", broadcastjob.Options{})
	job := m.create()
	m.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: broadcastjob.PodName(job, "a")}})
	if _, err := m.reconcileOnce(job); err == nil {
		t.Error("no error")
	}
	m.Look(job)
	if got := m.events(job, "FailedCreate"); len(got) != 1 || !strings.Contains(got[0], "the name is taken") ||
		job.Status.Active != 1 {
		t.Errorf("events %q, %s", got, counters(job))
	}
}

// A pod that an earlier process has created is found by its name.
func TestPodOfEarlierProcess(t *testing.T) {
	m := newModel(t, "a b", broadcastjob.Options{})
	job := m.create()
	stale := lagging(m)
	if _, err := m.reconcileOnce(job); err != nil {
		t.Fatal(err)
	}
	m.restart(stale)
	for range 2 {
		if _, err := m.reconcileOnce(job); err != nil {
			t.Fatal(err)
		}
	}
	if m.Look(job); len(m.pods()) != 2 || job.Status.Active != 2 {
		t.Errorf("%d pods, %s", len(m.pods()), counters(job))
	}
}

// What the cache does not show yet is not written again: neither a deletion, nor a creation whose answer was lost.
func TestOwnWrites(t *testing.T) {
	m := newModel(t, "a b", broadcastjob.Options{})
	job := m.create()
	stale := lagging(m)
	lose := true
	m.restart(podbench.Writes(stale, func(what string, write func() error) error {
		err := write()
		if lose && err == nil && what == "create/"+broadcastjob.PodName(job, "a") {
			return apierrors.NewInternalError(errors.New("the answer is lost"))
		}
		return err
	}))
	if _, err := m.reconcileOnce(job); err == nil {
		t.Error("no error")
	}
	lose = false
	requests, err := m.reconcileOnce(job)
	if want := []string{
		"POST pods/" + broadcastjob.PodName(job, "b") + " 201", "PATCH broadcastjobs/check/status 200",
	}; err != nil || !slices.Equal(requests, want) {
		t.Errorf("after a lost answer: requests %q, want %q, %v", requests, want, err)
	}
	m.run()
	m.run()
	stale.Freeze()
	for _, name := range []string{"a", "b"} {
		m.node(name, evict)
	}
	if requests, err := m.reconcileOnce(job); err != nil || len(requests) != 3 {
		t.Errorf("deletions: requests %q, %v", requests, err)
	}
	if requests, err := m.reconcileOnce(job); err != nil || len(requests) > 0 {
		t.Errorf("after deletions that the cache does not show: requests %q, %v", requests, err)
	}
}

// A spec that cannot be used is one event, and leaves the job alone until it changes.
func TestInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1beta1.BroadcastJob)
		path   string
	}{
		"parallelism": {parallelism("-5"), "spec.parallelism"},
		"restart policy": {
			func(j *v1beta1.BroadcastJob) { j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways },
			"spec.template.spec.restartPolicy",
		},
		"name": {func(j *v1beta1.BroadcastJob) { j.Name = strings.Repeat("x", 64) }, "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, "a", broadcastjob.Options{})
			job := m.create(c.change)
			for range 3 {
				if requests, err := m.reconcileOnce(job); !errors.Is(err, reconcile.TerminalError(nil)) || len(requests) > 0 {
					t.Errorf("error %v, requests %v", err, requests)
				}
			}
			if got := m.events(job, "InvalidSpec"); len(got) != 1 || !strings.HasPrefix(got[0], "Warning "+c.path+": ") {
				t.Errorf("events %q", got)
			}
		})
	}
}

// The events of a job, in the words of the reference.
func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		changes []func(*v1beta1.BroadcastJob)
		ends    string
		reason  string
		want    string
	}{
		"created":   {nil, "", "SuccessfulCreate", "Normal Created pod: check-"},
		"completed": {nil, "", "JobComplete", "Normal Job shop/check is completed, 1 pods succeeded, 0 pods failed"},
		"failed":    {nil, "failed", "FailedPodFound", "Warning Job shop/check failed: failed pod is found: check-"},
		"paused": {
			changes: []func(*v1beta1.BroadcastJob){policy(v1beta1.FailurePolicyTypePause)},
			ends:    "failed",
			reason:  "Paused",
			want:    "Warning 1 pods failed (check-",
		},
		"late": {
			changes: []func(*v1beta1.BroadcastJob){deadline(2)},
			ends:    "runs",
			reason:  "DeadlineExceeded",
			want:    "Warning Job shop/check failed: the job was active for longer than its deadline",
		},
		"stopped": {[]func(*v1beta1.BroadcastJob){deadline(2)}, "runs", "SuccessfulDelete", "Normal Deleted pod: check-"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, "a", broadcastjob.Options{})
			m.ends["a"] = c.ends
			job := m.create(c.changes...)
			for range 8 {
				m.turn()
			}
			if got := m.events(job, c.reason); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("events %q", got)
			}
		})
	}
	m := newModel(t, "a b", broadcastjob.Options{})
	m.ends["a"], m.ends["b"] = "runs", "runs"
	job := m.create(parallelism("2"))
	m.turn()
	m.change(job, parallelism("1"))
	for range 3 {
		m.turn()
	}
	if got := m.events(job, "TooManyActivePods"); len(got) != 1 {
		t.Errorf("events %q", got)
	}
	m.change(job, paused(true))
	m.turn()
	m.change(job, paused(false))
	m.turn()
	if got := m.events(job, "Continue"); len(got) != 1 || got[0] != "Normal Job shop/check continues" {
		t.Errorf("events %q", got)
	}
}

// A job that is deleted or gone is left to the garbage collector.
func TestDeleted(t *testing.T) {
	m := newModel(t, "a", broadcastjob.Options{})
	job := m.create(func(j *v1beta1.BroadcastJob) { j.Finalizers = []string{"example.com/hold"} })
	if err := m.Server.Delete(m.Context(), job); err != nil {
		t.Fatal(err)
	}
	if requests, err := m.reconcileOnce(job); err != nil || len(requests) > 0 {
		t.Errorf("requests %v, %v", requests, err)
	}
	job.Name = "another"
	if requests, err := m.reconcileOnce(job); err != nil || len(requests) > 0 {
		t.Errorf("requests %v, %v", requests, err)
	}
}

func TestNew(t *testing.T) {
	if _, err := broadcastjob.New(nil, broadcastjob.Options{}); err == nil ||
		fmt.Sprint(err) != "broadcastjob: a client is needed" {
		t.Errorf("got %v", err)
	}
}
