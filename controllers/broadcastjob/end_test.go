package broadcastjob

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// When to look again: the deadline and the time to live follow from the status, and overflow into no limit.
func TestRequeueAfter(t *testing.T) {
	for name, c := range map[string]struct {
		why       string
		job       changes
		pods      string
		passed    time.Duration
		want      time.Duration
		deleteJob bool
	}{
		"no limit": {"nothing changes with time", nil, "a=running", 0, 0, false},
		"deadline": {
			why:    "the rest of it",
			job:    changes{deadline(60)},
			pods:   "a=running",
			passed: 20 * time.Second,
			want:   40 * time.Second,
		},
		"deadline and a clock": {
			why:    "the clock was set back",
			job:    changes{deadline(60)},
			pods:   "a=running",
			passed: -20 * time.Second,
			want:   80 * time.Second,
		},
		"deadline far off": {
			why: "a hundred years are enough", job: changes{deadline(1 << 62)}, pods: "a=running",
			want: 100 * 365 * 24 * time.Hour,
		},
		"deadline while paused": {
			why: "a paused job has none", job: changes{deadline(60), paused}, pods: "a=running", passed: 20 * time.Second,
		},
		"deadline of a pause": {
			why:    "nor has one that a failed pod pauses",
			job:    changes{deadline(60), policy(pause)},
			pods:   "a=failed",
			passed: 20 * time.Second,
		},
		"deadline of never": {"it does not apply", changes{never, deadline(60)}, "a=running", 0, 0, false},
		"time to live": {
			why:    "the rest of it",
			job:    changes{ttl(30), ended(v1beta1.JobComplete, 0)},
			passed: 29 * time.Second,
			want:   time.Second,
		},
		"time to die": {
			why: "it has passed", job: changes{ttl(30), ended(v1beta1.JobFailed, 0)}, passed: 30 * time.Second, deleteJob: true,
		},
		"no time to live": {"it has passed at once", changes{ttl(0), ended(v1beta1.JobFailed, 0)}, "", 0, 0, true},
		"kept": {
			why: "without a time to live the job stays", job: changes{ended(v1beta1.JobComplete, 0)}, passed: time.Hour,
		},
		"never dies": {
			why: "a job that never completes stays", job: changes{never, ttl(0), ended(v1beta1.JobFailed, 0)}, passed: time.Hour,
		},
		"at the end": {
			why:    "the time to live begins",
			job:    changes{ttl(30)},
			pods:   "a=succeeded",
			passed: time.Minute,
			want:   30 * time.Second,
		},
		"end without a life": {
			why:    "the next pass deletes the job",
			job:    changes{ttl(0)},
			pods:   "a=succeeded",
			passed: time.Minute,
			want:   time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.job...)
			pass := planOf(snapshot{
				job: job, nodes: newNodes("a"), pods: newPods(job, c.pods), now: epoch().Add(c.passed),
			})
			if pass.after != c.want || pass.deleteJob != c.deleteJob {
				t.Errorf("%s: after %s, delete %t", c.why, pass.after, pass.deleteJob)
			}
		})
	}
	job := newJob(ttl(30), ended(v1beta1.JobComplete, 0))
	job.Status.CompletionTime = nil
	if pass := planOf(snapshot{job: job, now: epoch()}); pass.after != 30*time.Second {
		t.Errorf("without a completion time: after %s", pass.after)
	}
	job.Status.Conditions[0].LastTransitionTime = metav1.Time{}
	if pass := planOf(snapshot{job: job, now: epoch()}); pass.after != 0 || pass.deleteJob {
		t.Errorf("without any time: %+v", pass)
	}
}

// A job that has ended creates nothing, and deletes what is left to delete.
func TestOver(t *testing.T) {
	for name, c := range map[string]struct {
		why    string
		job    changes
		pods   string
		remove string
	}{
		"completed": {"pods that ended stay", changes{ended(v1beta1.JobComplete, 0)}, "a=succeeded b=failed", ""},
		"cleaned": {
			why:    "what never started goes, what runs on a lost node stays",
			job:    changes{ended(v1beta1.JobComplete, 0)},
			pods:   "a=pending x=running",
			remove: "check-0",
		},
		"failed": {
			why:    "all that runs goes, after a restart as well",
			job:    changes{ended(v1beta1.JobFailed, 0)},
			pods:   "a=running b=failed c=ending d=succeeded",
			remove: "check-0",
		},
		"restarts": {
			why:  "a pod that restarts too often stays",
			job:  changes{restarting(0), ended(v1beta1.JobComplete, 0)},
			pods: "a=1 b=succeeded",
		},
		"retries": {
			why:    "also after a failure",
			job:    changes{restarting(0), ended(v1beta1.JobFailed, 0)},
			pods:   "a=1 b=running",
			remove: "check-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.job...)
			pass := planOf(snapshot{job: job, nodes: newNodes("a b c d e"), pods: newPods(job, c.pods), now: epoch()})
			if deleted(pass) != c.remove || len(pass.create) > 0 || pass.ends || pass.turn != nil {
				t.Errorf("%s: deletes %q, creates %q", c.why, deleted(pass), created(pass))
			}
			if diff := cmp.Diff(job.Status, pass.status); diff != "" {
				t.Errorf("the status changes (-was +is):\n%s", diff)
			}
		})
	}
	deletedJob := newJob(func(j *v1beta1.BroadcastJob) { j.DeletionTimestamp = &metav1.Time{Time: epoch()} })
	if pass := planOf(snapshot{
		job: deletedJob, nodes: newNodes("a"), now: epoch(),
	}); len(pass.create) > 0 || pass.after != 0 {
		t.Errorf("a job that is deleted: %+v", pass)
	}
}

// A new job gets a start, which is that of its oldest pod where an earlier status was lost.
func TestStart(t *testing.T) {
	job := newJob(func(j *v1beta1.BroadcastJob) { j.Status = v1beta1.BroadcastJobStatus{} })
	later := epoch().Add(time.Minute)
	pass := planOf(snapshot{job: job, nodes: newNodes("a"), now: later})
	if !pass.status.StartTime.Time.Equal(later) || pass.status.Phase != v1beta1.PhaseRunning {
		t.Errorf("got %+v", pass.status)
	}
	pass = planOf(snapshot{job: job, nodes: newNodes("a"), pods: newPods(job, "a=running"), now: later})
	if !pass.status.StartTime.Time.Equal(epoch()) {
		t.Errorf("with a pod of %s the job starts at %s", epoch(), pass.status.StartTime)
	}
}

// The end replaces a condition of its type, and is announced in the words of the reference.
func TestEnd(t *testing.T) {
	job := newJob(func(j *v1beta1.BroadcastJob) {
		j.Status.Conditions = []v1beta1.JobCondition{
			{Type: v1beta1.JobComplete, Status: corev1.ConditionFalse}, {Type: "Other"},
		}
	})
	pass := planOf(snapshot{job: job, nodes: newNodes("a"), pods: newPods(job, "a=succeeded"), now: epoch()})
	now := metav1.NewTime(epoch())
	want := []v1beta1.JobCondition{{Type: "Other"}, {
		Type:               v1beta1.JobComplete,
		Status:             corev1.ConditionTrue,
		LastProbeTime:      now,
		LastTransitionTime: now,
		Reason:             "Complete",
		Message:            "Job completed, 1 pods succeeded, 0 pods failed",
	}}
	if diff := cmp.Diff(want, pass.status.Conditions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !pass.status.CompletionTime.Equal(&now) ||
		pass.turn.Text != "Job shop/check is completed, 1 pods succeeded, 0 pods failed" {
		t.Errorf("completed at %s, %q", pass.status.CompletionTime, pass.turn.Text)
	}
}
