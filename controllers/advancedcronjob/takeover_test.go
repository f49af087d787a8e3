package advancedcronjob_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/objects"
)

// What OpenKruise has left is continued without a write, until the next tick.
func TestTakeover(t *testing.T) {
	for name, c := range map[string]struct {
		why, state, now, next string
		version               string
	}{
		"created": {
			why:     "no child exists yet, and the status has the last tick",
			state:   "1-created",
			now:     "2026-11-21T02:59:40Z",
			next:    "2026-11-21T03:00:00Z",
			version: "v1beta1",
		},
		"updated": {
			why:     "one child is active, one has ended",
			state:   "3-updated",
			now:     "2026-11-21T03:01:30Z",
			next:    "2026-11-21T03:02:00Z",
			version: "v1beta1",
		},
		"v1alpha1": {
			why:     "references of the older version count",
			state:   "3-updated",
			now:     "2026-11-21T03:01:30Z",
			next:    "2026-11-21T03:02:00Z",
			version: "v1alpha1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, v1beta1.BroadcastJobTemplate)
			var jobs v1beta1.AdvancedCronJobList
			var children v1beta1.BroadcastJobList
			objects.Recorded(t, c.state+"/advancedcronjobs.v1beta1.yaml", &jobs)
			objects.Recorded(t, c.state+"/broadcastjobs.v1beta1.yaml", &children)
			put := func(o client.Object) {
				if err := m.Server.Put(o); err != nil {
					t.Fatal(err)
				}
			}
			put(&jobs.Items[0])
			owned := 0
			for i := range children.Items {
				for j := range children.Items[i].OwnerReferences {
					children.Items[i].OwnerReferences[j].APIVersion = "apps.kruise.io/" + c.version
					owned++
				}
				put(&children.Items[i])
			}
			if owned == 0 {
				t.Fatal("no recorded child has an owner")
			}
			m.Clock = clock(c.now)
			m.Still()
			if requests := m.Server.Requests(); len(requests) > 0 {
				t.Errorf("%s: %q", c.why, requests)
			}
			if !m.Due.Equal(clock(c.next)) {
				t.Errorf("%s: due at %s, want %s", c.why, m.Due, c.next)
			}
		})
	}
}

// An object that OpenKruise has stored with faults goes on being scheduled, and its children are those that OpenKruise
// acts as if it had.
func TestStoredFaults(t *testing.T) {
	broadcast := func(change func(*v1beta1.BroadcastJobSpec)) func(*v1beta1.AdvancedCronJob) {
		return func(j *v1beta1.AdvancedCronJob) { change(&j.Spec.Template.BroadcastJobTemplate.Spec) }
	}
	for name, c := range map[string]struct {
		change func(*v1beta1.AdvancedCronJob)
		// at is where the child has another value, or none.
		at   []string
		want any
		// held is what the event InvalidSpec names where no child is created.
		held string
	}{
		"failure policy": {
			change: broadcast(func(s *v1beta1.BroadcastJobSpec) { s.FailurePolicy.Type = "continue" }),
			at:     []string{"failurePolicy", "type"},
			want:   "Continue",
		},
		"completion policy": {
			change: broadcast(func(s *v1beta1.BroadcastJobSpec) { s.CompletionPolicy.Type = "never" }),
			at:     []string{"completionPolicy", "type"},
			want:   "Always",
		},
		"restart limit": {
			change: broadcast(func(s *v1beta1.BroadcastJobSpec) { s.FailurePolicy.RestartLimit = -1 }),
			at:     []string{"failurePolicy", "restartLimit"},
			want:   nil,
		},
		"deadline": {
			change: broadcast(func(s *v1beta1.BroadcastJobSpec) {
				s.CompletionPolicy.ActiveDeadlineSeconds = ptr.To[int64](-1)
			}),
			at:   []string{"completionPolicy", "activeDeadlineSeconds"},
			want: int64(0),
		},
		"time to live": {
			change: broadcast(func(s *v1beta1.BroadcastJobSpec) {
				s.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](-1)
			}),
			at:   []string{"completionPolicy", "ttlSecondsAfterFinished"},
			want: int64(0),
		},
		"parallelism": {
			change: broadcast(func(s *v1beta1.BroadcastJobSpec) { s.Parallelism = ptr.To(intstr.FromInt32(-1)) }),
			at:     []string{"parallelism"},
			want:   int64(0),
		},
		"no fault": {
			change: broadcast(func(s *v1beta1.BroadcastJobSpec) { s.Parallelism = ptr.To(intstr.FromString("50%")) }),
			at:     []string{"parallelism"},
			want:   "50%",
		},
		"history":           {change: history(-1, -1)},
		"deadline of ticks": {change: deadline(math.MaxInt64)},
		"two zones": {change: func(j *v1beta1.AdvancedCronJob) {
			j.Spec.Schedule, j.Spec.TimeZone = "TZ=UTC */5 * * * *", ptr.To("UTC")
		}},
		"concurrency": {change: policy("allow")},
		"in words": {
			change: broadcast(func(s *v1beta1.BroadcastJobSpec) { s.Parallelism = ptr.To(intstr.FromString("many")) }),
			held:   "broadcastJobTemplate.spec.parallelism",
		},
		"without end": {
			change: broadcast(func(s *v1beta1.BroadcastJobSpec) { s.Template.Spec.RestartPolicy = "Always" }),
			held:   "restartPolicy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, v1beta1.BroadcastJobTemplate)
			job := m.create("web", c.change)
			m.until("00:05")
			if c.held != "" {
				m.has("no child can be created", "")
				if got := m.emitted(job, "InvalidSpec"); len(got) != 1 || !strings.Contains(got[0], c.held) {
					t.Errorf("events %q", got)
				}
				return
			}
			m.has("the schedule goes on", "00:05")
			if len(c.at) == 0 || len(m.children()) == 0 {
				return
			}
			if got, _, err := unstructured.NestedFieldNoCopy(m.children()[0].Object,
				append([]string{"spec"}, c.at...)...); got != c.want || err != nil {
				t.Errorf("the child has %v at %v, want %v: %v", got, c.at, c.want, err)
			}
		})
	}
}

// Objects whose ticks are far away cost nothing but a pass an hour, and no request.
func TestIdle(t *testing.T) {
	m := newModel(t, v1beta1.BroadcastJobTemplate)
	for i := range 200 {
		m.create(fmt.Sprint("web-", i), func(j *v1beta1.AdvancedCronJob) { j.Spec.Schedule = "0 0 1 7 *" })
	}
	m.Reconcile() // the type of the children, once
	m.Server.Requests()
	m.Advance(30 * time.Minute)
	m.Reconcile()
	if requests := m.Server.Requests(); len(requests) > 0 {
		t.Errorf("%d requests, as %s", len(requests), requests[0])
	}
	if wait := m.Due.Sub(m.Clock); wait != time.Hour {
		t.Errorf("the next pass is after %s", wait)
	}
}

// A process that has just started, and whose cache lags, reads the object live before its first child.
func TestStart(t *testing.T) {
	m := newModel(t, v1beta1.BroadcastJobTemplate)
	m.create("web", history(0, 0))
	m.until("00:04")
	stale := m.Server.Lagging()
	stale.Freeze()
	m.restart(m.Server) // another process creates the child, which ends and leaves
	m.until("00:05")
	m.end(m.children()[0], true)
	m.Still()
	m.has("the child has gone", "")
	m.restart(stale)
	m.Server.Requests()
	m.Still()
	m.has("the tick has had its child", "")
	if requests := m.Server.Requests(); len(requests) > 0 {
		t.Errorf("requests %q", requests)
	}
	m.until("00:10")
	m.has("the next tick has one", "00:10")
}
