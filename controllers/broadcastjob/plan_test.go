package broadcastjob

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

type changes = []func(*v1beta1.BroadcastJob)

const (
	failFast = v1beta1.FailurePolicyTypeFailFast
	goOn     = v1beta1.FailurePolicyTypeContinue
	pause    = v1beta1.FailurePolicyTypePause
)

// TestOracle has the counters of valid jobs. These rows have invalid fields, the turns of a job, and what is stored
// before any pod is deleted.
func TestPlan(t *testing.T) {
	const finished = "a=running b=failed c=succeeded"
	for name, c := range map[string]struct {
		job        changes
		pods, want string
	}{
		"no parallelism is too low": {
			job: changes{parallelism("-2147483648")}, pods: "a=running",
			want: `creates "", deletes ""; running: desired 3, active 1, succeeded 0, failed 0; turn "", first false`,
		},
		"a job completes with its last pod": {
			pods: "a=succeeded b=succeeded c=succeeded",
			want: `creates "", deletes ""; completed: desired 3, active 0, succeeded 3, failed 0; ` +
				`turn "JobComplete", first true`,
		},
		"an unknown failure policy continues": {
			job: changes{policy("Retry")}, pods: "a=succeeded b=failed",
			want: `creates "c", deletes ""; running: desired 3, active 1, succeeded 1, failed 1; turn "", first false`,
		},
		"a failed pod ends the job, and pods that run count as failed": {
			job: changes{policy(failFast)}, pods: finished,
			want: `creates "", deletes "check-0"; failed: desired 3, active 0, succeeded 1, failed 2; ` +
				`turn "FailedPodFound", first true`,
		},
		"a failed pod pauses the job": {
			job: changes{policy(pause)}, pods: finished,
			want: `creates "", deletes ""; paused: desired 3, active 1, succeeded 1, failed 1; turn "Paused", first false`,
		},
		"the pause is announced once": {
			job: changes{policy(pause), phase("paused")}, pods: finished,
			want: `creates "", deletes ""; paused: desired 3, active 1, succeeded 1, failed 1; turn "", first false`,
		},
		"the job continues when the failed pod is deleted": {
			job: changes{policy(pause), phase("paused")}, pods: "a=succeeded b=running",
			want: `creates "c", deletes ""; running: desired 3, active 2, succeeded 1, failed 0; turn "Continue", first false`,
		},
		"a deadline below zero has passed": {
			job: changes{deadline(-7), policy(goOn)}, pods: "a=running b=succeeded c=running",
			want: `creates "", deletes "check-0 check-2"; failed: desired 3, active 0, succeeded 1, failed 2; ` +
				`turn "DeadlineExceeded", first true`,
		},
		"an unknown completion policy is Always": {
			job:  changes{deadline(0), func(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.Type = "Sometimes" }},
			pods: "a=running",
			want: `creates "", deletes "check-0"; failed: desired 3, active 0, succeeded 0, failed 1; ` +
				`turn "DeadlineExceeded", first true`,
		},
		"a job that completed, and now never does, goes on": {
			job: changes{ended(v1beta1.JobComplete, 0), never}, pods: "a=succeeded b=succeeded",
			want: `creates "c", deletes ""; running: desired 3, active 1, succeeded 2, failed 0; turn "", first false`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.job...)
			pass := planOf(snapshot{job: job, nodes: newNodes("a b c"), pods: newPods(job, c.pods), now: epoch()})
			status, turn := concluded(pass), ""
			if pass.turn != nil {
				turn = pass.turn.Code
			}
			got := fmt.Sprintf("creates %q, deletes %q; %s; turn %q, first %t",
				created(pass), deleted(pass), countersOf(status), turn, pass.ends)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\nnotes %v", diff, pass.notes)
			}
		})
	}
}

func requesting(cpu string) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) {
		j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu),
		}
	}
}
