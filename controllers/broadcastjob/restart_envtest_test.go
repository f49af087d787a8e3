//go:build envtest

package broadcastjob_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// testRestartRunning restarts the manager while pods run: nothing is written, and the job goes on.
func testRestartRunning(b *bench) {
	b.addNodes("a", "b")
	stop := b.start(broadcastjob.Options{})
	job := b.create(parallelism("1"))
	b.is(job, "running: desired 2, active 1, succeeded 0, failed 0")
	b.Still()
	stop()
	b.Asked()
	stop = b.start(broadcastjob.Options{})
	b.Still()
	if asked := writes(b.Asked()); len(asked) > 0 {
		b.Errorf("a restart costs %q", asked)
	}
	stop()
	b.end("a", corev1.PodSucceeded) // while no manager runs
	b.start(broadcastjob.Options{})
	b.runs("a b")
	b.end("b", corev1.PodSucceeded)
	b.is(job, "completed: desired 2, active 0, succeeded 2, failed 0")
}

// testRestartPaused restarts the manager while a failed pod pauses the job.
func testRestartPaused(b *bench) {
	b.addNodes("a", "b")
	stop := b.start(broadcastjob.Options{})
	job := b.create(parallelism("1"), policy(v1beta1.FailurePolicyTypePause))
	b.runs("a")
	b.end("a", corev1.PodFailed)
	b.is(job, "paused: desired 2, active 0, succeeded 0, failed 1")
	b.Still()
	stop()
	b.Asked()
	b.start(broadcastjob.Options{})
	b.Still()
	if asked := writes(b.Asked()); len(asked) > 0 {
		b.Errorf("a restart costs %q", asked)
	}
	b.Gone(b.pods()["a"])
	b.is(job, "running: desired 2, active 1, succeeded 0, failed 0")
	if got := b.Events(job, "Paused"); len(got) != 1 || !strings.HasSuffix(got[0], "(1)") {
		b.Errorf("events %q", got)
	}
}

// testRestartEnded restarts the manager after the end of a job.
func testRestartEnded(b *bench) {
	b.addNodes("a")
	stop := b.start(broadcastjob.Options{})
	job := b.create()
	b.runs("a")
	b.end("a", corev1.PodSucceeded)
	b.is(job, "completed: desired 1, active 0, succeeded 1, failed 0")
	b.Still()
	stop()
	b.Gone(b.pods()["a"]) // a job that has ended does not run again
	b.Asked()
	b.start(broadcastjob.Options{})
	b.Still()
	if asked := writes(b.Asked()); len(asked) > 0 {
		b.Errorf("a restart costs %q", asked)
	}
}

// testRestartUnreported: the manager has created pods, and is restarted before it has written the status.
func testRestartUnreported(b *bench) {
	b.addNodes("a", "b")
	stop := b.startWith(broadcastjob.Options{}, func(c client.WithWatch) client.WithWatch {
		return podbench.Writes(c, func(what string, write func() error) error {
			if strings.HasPrefix(what, "status/") {
				return apierrors.NewInternalError(errors.New("no status"))
			}
			return write()
		})
	})
	job := b.create()
	b.runs("a b")
	stop()
	pods := b.pods()
	b.start(broadcastjob.Options{})
	b.is(job, "running: desired 2, active 2, succeeded 0, failed 0")
	for node, pod := range b.pods() {
		if pod.UID != pods[node].UID {
			b.Errorf("the pod of %s is another one", node)
		}
	}
	if start := job.Status.StartTime; start == nil || start.After(pods["a"].CreationTimestamp.Time) {
		b.Errorf("the job starts at %s, its pod at %s", start, pods["a"].CreationTimestamp)
	}
}

// testRestartFailing: the end is written, and the manager is restarted before it has deleted the pods.
func testRestartFailing(b *bench) {
	b.addNodes("a", "b")
	stop := b.startWith(broadcastjob.Options{}, func(c client.WithWatch) client.WithWatch {
		return podbench.Writes(c, func(what string, write func() error) error {
			if strings.HasPrefix(what, "delete/") {
				return apierrors.NewInternalError(errors.New("no deletions"))
			}
			return write()
		})
	})
	job := b.create()
	b.runs("a b")
	b.bind("b")
	b.end("a", corev1.PodFailed)
	b.is(job, "failed: desired 2, active 0, succeeded 0, failed 2")
	stop()
	b.start(broadcastjob.Options{})
	b.Until(func() error {
		if pod := b.pods()["b"]; pod != nil && pod.DeletionTimestamp == nil {
			return errors.New("a pod still runs")
		}
		return nil
	})
	b.is(job, "failed: desired 2, active 0, succeeded 0, failed 2")
}

// testRestartDeadline: the deadline passes after a restart, in a cluster where nothing else happens.
func testRestartDeadline(b *bench) {
	b.addNodes("a")
	stop := b.start(broadcastjob.Options{})
	job := b.create(deadline(3))
	b.is(job, "running: desired 1, active 1, succeeded 0, failed 0")
	stop()
	b.start(broadcastjob.Options{})
	b.is(job, "failed: desired 1, active 0, succeeded 0, failed 1")
	if took := job.Status.CompletionTime.Sub(job.Status.StartTime.Time); took < 3*time.Second || took > 15*time.Second {
		b.Errorf("the job failed after %s", took)
	}
}

// testTimeToLive: a job is deleted after its end, though the manager restarts.
func testTimeToLive(b *bench) {
	b.addNodes("a")
	stop := b.start(broadcastjob.Options{})
	job := b.create(ttl(2))
	b.runs("a")
	b.end("a", corev1.PodSucceeded)
	b.is(job, "completed: desired 1, active 0, succeeded 1, failed 0")
	stop()
	b.start(broadcastjob.Options{})
	b.Until(func() error {
		if err := b.Look(job); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the job is still there: %w", errors.Join(err, errors.New("no deletion")))
		}
		return nil
	})
}
