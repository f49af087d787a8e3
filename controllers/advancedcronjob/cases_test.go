package advancedcronjob_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func allKinds() []v1beta1.TemplateKind {
	return []v1beta1.TemplateKind{v1beta1.JobTemplate, v1beta1.BroadcastJobTemplate, v1beta1.ImageListPullJobTemplate}
}

// Each kind of children has the name, the owner and the template of the reference, and two writes per tick: the child,
// and the status.
func TestChildren(t *testing.T) {
	for _, kind := range allKinds() {
		t.Run(string(kind), func(t *testing.T) {
			m := newModel(t, kind)
			job := m.create("web", policy(v1beta1.ForbidConcurrent))
			m.until("00:04:59")
			m.has("no tick has passed", "")
			m.last(job, "")
			if job.Status.Type != kind {
				t.Errorf("type %q", job.Status.Type)
			}
			m.Server.Requests()
			m.until("00:05")
			m.has("the first tick", "00:05")
			m.last(job, "00:05")
			child := m.children()[0]
			owner := metav1.GetControllerOf(child)
			if child.GetName() != "web-1893456300" ||
				child.GetAnnotations()[v1beta1.AdvancedCronJobScheduledAtKey] != "2030-01-01T00:05:00Z" ||
				owner.APIVersion != "apps.kruise.io/v1beta1" || owner.Kind != "AdvancedCronJob" || !*owner.BlockOwnerDeletion ||
				len(child.GetFinalizers()) > 0 {
				t.Errorf("metadata %v", child.Object["metadata"])
			}
			if kind == v1beta1.JobTemplate && (child.GetLabels()["app"] != "web" || child.GetAnnotations()["note"] != "kept") {
				t.Errorf("labels %v, annotations %v", child.GetLabels(), child.GetAnnotations())
			}
			if len(job.Status.Active) != 1 || job.Status.Active[0].UID != child.GetUID() ||
				job.Status.Active[0].Kind != string(kind) {
				t.Errorf("active %+v", job.Status.Active)
			}
			writes := slices.DeleteFunc(m.Server.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET") })
			if len(writes) != 2 {
				t.Errorf("a tick took %q", writes)
			}
			m.end(child, true)
			m.Still()
			m.has("the end of the child", "00:05+")
			if m.look(job); len(job.Status.Active) > 0 {
				t.Errorf("active %+v", job.Status.Active)
			}
			if got := m.emitted(job, "SawCompletedJob"); len(got) != 1 || !strings.Contains(got[0], "web-1893456300") {
				t.Errorf("events %q", got)
			}
			m.until("00:10")
			m.has("the next tick", "00:05+ 00:10")
			m.end(m.children()[1], false)
			m.Still()
			m.has("the child failed", "00:05+ 00:10-")
		})
	}
}

// A tick that waits for the child before runs until its deadline. The stories have the other rules of concurrency.
func TestForbid(t *testing.T) {
	m := newModel(t, v1beta1.JobTemplate)
	job := m.create("web", policy(v1beta1.ForbidConcurrent), deadline(200))
	m.until("00:10")
	m.has("the tick waits", "00:05")
	if got := m.emitted(job, "JobAlreadyActive"); len(got) != 1 {
		t.Errorf("events %q", got)
	}
	m.until("00:12")
	m.end(m.children()[0], true)
	m.Still()
	m.has("the tick runs as soon as the child ends, before the deadline", "00:05+ 00:10")
	m.until("00:19")
	m.end(m.children()[1], true)
	m.Still()
	m.has("after the deadline it does not", "00:05+ 00:10+")
	if got := m.emitted(job, "MissSchedule"); len(got) != 1 || !strings.Contains(got[0], "00:15:00") {
		t.Errorf("events %q", got)
	}
	m.until("00:20")
	m.has("the next tick does", "00:05+ 00:10+ 00:20")
}

// Finished children stay up to the limits, also while the schedule is paused. Without any child the last tick is known.
func TestHistory(t *testing.T) {
	m := newModel(t, v1beta1.JobTemplate)
	job := m.create("web", policy(v1beta1.ReplaceConcurrent), history(2, 1), deadline(360))
	for i, at := range []string{"00:05", "00:10", "00:15", "00:20", "00:25"} {
		m.until(at)
		for _, c := range m.children() {
			if status, _ := c.Object["status"].(map[string]any); len(status) == 0 {
				m.end(c, i%2 == 0)
			}
		}
	}
	m.Still()
	m.until("00:30")
	m.has("two that succeeded, one that failed, one that is active", "00:15+ 00:20- 00:25+ 00:30")
	m.until("00:35")
	m.has("the active one is replaced", "00:15+ 00:20- 00:25+ 00:35")
	m.change(job, paused(true), history(0, 0))
	m.until("00:50")
	m.has("a pause holds ticks back, and no cleanup", "00:35")
	m.end(m.children()[0], true)
	m.Still()
	m.has("limit 0", "")
	m.last(job, "00:35")
	m.change(job, paused(false))
	m.Still()
	m.has("one child after the pause, for the latest tick", "00:50")
	m.end(m.children()[0], true)
	m.Still()
	m.until("00:54:59")
	m.has("no tick runs twice, although its child is gone", "")
	m.last(job, "00:50")
	m.until("00:55")
	m.has("the next one runs", "00:55")
}

// Ticks that were missed: the latest runs, however many there are, unless it is too late.
func TestMissedTicks(t *testing.T) {
	for name, c := range map[string]struct {
		why, now, want string
		change         []func(*v1beta1.AdvancedCronJob)
	}{
		"five":       {"exactly one child, for the latest", "00:29", "00:25", nil},
		"a hundred":  {"the reference creates the same child", "08:24", "08:20", nil},
		"a thousand": {"the reference stops for good after 100, and its hour has passed", "2030-01-05T13:01:00Z", "", nil},
		"a few in time": {
			why:    "the deadline bounds what is missed, as in the reference",
			now:    "2030-01-05T13:01:00Z",
			want:   "13:00",
			change: []func(*v1beta1.AdvancedCronJob){deadline(600)},
		},
		"late by 11 s": {"the deadline is 10 s", "00:05:11", "", []func(*v1beta1.AdvancedCronJob){deadline(10)}},
		"late by 9 s":  {"the deadline is 10 s", "00:05:09", "00:05", []func(*v1beta1.AdvancedCronJob){deadline(10)}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, v1beta1.BroadcastJobTemplate)
			m.create("web", c.change...)
			m.Clock = clock(c.now)
			m.Still()
			m.has(c.why, c.want)
			if m.Due.IsZero() {
				t.Error("the schedule has stopped")
			}
		})
	}
}

// A schedule that the reference has stopped after more than 100 missed ticks goes on with its next tick, also where
// that one falls on a restart.
func TestStuck(t *testing.T) {
	m := newModel(t, v1beta1.BroadcastJobTemplate)
	job := m.create("web", func(j *v1beta1.AdvancedCronJob) { j.Spec.Schedule = "0 2 * * *" })
	m.Clock = clock("2030-06-01T15:00:00Z")
	m.Still()
	m.has("nobody expects the job of the night at three in the afternoon", "")
	if got := m.emitted(job, "TooManyMissedTimes"); len(got) != 1 || !strings.Contains(got[0], "2030-06-01T02:00:00Z") {
		t.Errorf("events %q", got)
	}
	m.Clock = clock("2030-06-02T01:59:59Z")
	m.Still()
	m.restart(m.Server)
	m.Clock = clock("2030-06-02T02:00:15Z")
	m.Still()
	m.has("the next night", "02:00")
	if got := m.emitted(job, "TooManyMissedTimes"); len(got) != 1 {
		t.Errorf("events %q", got)
	}
}

// After a pause or an active child that held back more than 100 ticks, the next tick has a child.
func TestHeldLong(t *testing.T) {
	m := newModel(t, v1beta1.BroadcastJobTemplate)
	job := m.create("web", paused(true))
	m.Still()
	m.Clock = clock("2030-01-05T13:01:00Z")
	m.Still()
	m.change(job, paused(false), policy(v1beta1.ForbidConcurrent))
	m.Still()
	m.has("the pause ends", "")
	m.until("2030-01-05T13:05:00Z")
	m.has("the next tick", "13:05")
	m.restart(m.Server)
	m.until("2030-01-06T13:01:00Z")
	m.has("the child is active", "13:05")
	m.end(m.children()[0], true)
	m.Still()
	m.until("2030-01-06T13:05:00Z")
	m.has("the child has ended", "13:05+ 13:05")
}

// What no webhook saw is reported once, creates nothing, and is cleaned up after all.
func TestInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1beta1.AdvancedCronJob)
		want   string
	}{
		"schedule": {func(j *v1beta1.AdvancedCronJob) { j.Spec.Schedule = "* * *" }, "spec.schedule: Invalid value"},
		"panic":    {func(j *v1beta1.AdvancedCronJob) { j.Spec.Schedule = "TZ=Foo" }, "spec.schedule: Invalid value"},
		"zone": {
			func(j *v1beta1.AdvancedCronJob) { j.Spec.TimeZone = ptr.To("Mars/Olympus") }, "spec.timeZone: Invalid value",
		},
		"no template": {
			func(j *v1beta1.AdvancedCronJob) { j.Spec.Template = v1beta1.CronJobTemplate{} }, "spec.template: Forbidden",
		},
		"negative": {
			func(j *v1beta1.AdvancedCronJob) { j.Spec.StartingDeadlineSeconds = ptr.To[int64](-1) },
			"spec.startingDeadlineSeconds: Invalid value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, v1beta1.BroadcastJobTemplate)
			job := m.create("web", history(0, 0))
			m.until("00:05")
			m.has("one child", "00:05")
			m.change(job, c.change)
			m.end(m.children()[0], true)
			m.until("00:20")
			m.has("cleaned up, and none created", "")
			m.last(job, "00:05")
			if got := m.emitted(job, "InvalidSpec"); len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("events %q, want %q", got, c.want)
			}
		})
	}
}

// A child that a user created for the owner counts, and is no tick. One that claims a time far ahead stops nothing.
func TestForeignChildren(t *testing.T) {
	m := newModel(t, v1beta1.BroadcastJobTemplate)
	job := m.create("web", policy(v1beta1.ForbidConcurrent))
	m.until("00:05")
	m.end(m.children()[0], true)
	for name, at := range map[string]string{"by-hand": "", "forged": "2099-01-01T00:00:00Z", "odd": "noon"} {
		child := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Annotations: map[string]string{v1beta1.AdvancedCronJobScheduledAtKey: at},
			// As an older manager wrote it.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1alpha1", Kind: "AdvancedCronJob", Name: "web", UID: job.UID, Controller: ptr.To(true),
			}},
		}}
		if err := m.Server.Create(t.Context(), child); err != nil {
			t.Fatal(err)
		}
	}
	m.Still()
	m.last(job, "00:05")
	if len(job.Status.Active) != 3 {
		t.Errorf("active %+v", job.Status.Active)
	}
	m.until("00:10")
	if n := len(m.children()); n != 4 {
		t.Errorf("%d children", n)
	}
	for _, c := range m.children() {
		if err := m.Server.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	m.Still()
	m.has("the tick waited for them", "00:10")
}

// The name of a tick may belong to another object: that is reported, and the next tick has another name.
func TestTakenName(t *testing.T) {
	m := newModel(t, v1beta1.BroadcastJobTemplate)
	if err := m.Server.Create(t.Context(), &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1893456300",
	}}); err != nil {
		t.Fatal(err)
	}
	job := m.create("web")
	m.Clock = clock("00:05")
	for range 5 {
		m.Reconcile()
	}
	if got := m.emitted(job, "FailedCreate"); len(got) == 0 || !strings.Contains(got[0], "the name is taken") {
		t.Errorf("events %q", got)
	}
	m.last(job, "")
	m.Clock = clock("00:10")
	m.Still()
	m.last(job, "00:10")
}

// At most 500 children are active, and listed.
func TestTooManyActive(t *testing.T) {
	m := newModel(t, v1beta1.BroadcastJobTemplate)
	job := m.create("web", func(j *v1beta1.AdvancedCronJob) { j.Spec.Schedule = "@every 1h" })
	for i := range 501 {
		child := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprint("x-", i),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: "AdvancedCronJob", Name: "web", UID: job.UID, Controller: ptr.To(true),
			}},
		}}
		if err := m.Server.Create(t.Context(), child); err != nil {
			t.Fatal(err)
		}
	}
	m.until("01:00:00")
	m.until("01:30:00")
	if m.look(job); len(job.Status.Active) != 500 || len(m.children()) != 501 {
		t.Errorf("%d listed of %d children", len(job.Status.Active), len(m.children()))
	}
	if got := m.emitted(job, "TooManyActive"); len(got) != 1 {
		t.Errorf("events %q", got)
	}
}
