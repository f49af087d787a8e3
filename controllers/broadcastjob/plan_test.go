package broadcastjob

import (
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

func TestPlan(t *testing.T) {
	cases := map[string]struct {
		why         string
		job         changes
		nodes, pods string
		// create are nodes, remove are pods.
		create, remove string
		status         string
		turn           string
		first          bool
	}{
		"parallelism": {
			why:    "two pods are active at once",
			job:    changes{parallelism("2")},
			nodes:  "a b c",
			pods:   "a=running",
			create: "b",
			status: "running: desired 3, active 2, succeeded 0, failed 0",
		},
		"percentage": {
			why:    "40% of five is two",
			job:    changes{parallelism("40%")},
			nodes:  "a b c d e",
			pods:   "a=running",
			create: "b",
			status: "running: desired 5, active 2, succeeded 0, failed 0",
		},
		"percentage rounded": {
			why:    "a percentage is rounded up",
			job:    changes{parallelism("50%")},
			nodes:  "a b c d e",
			create: "a b c",
			status: "running: desired 5, active 3, succeeded 0, failed 0",
		},
		"none at once": {
			why:    "parallelism 0 creates no pod",
			job:    changes{parallelism("0%")},
			nodes:  "a b",
			status: "running: desired 2, active 0, succeeded 0, failed 0",
		},
		"below zero": {
			why:    "no number is too low",
			job:    changes{parallelism("-2147483648")},
			nodes:  "a b c",
			pods:   "a=running",
			status: "running: desired 3, active 1, succeeded 0, failed 0",
		},
		"cordoned": {
			why:    "a cordoned node gets no pod",
			nodes:  "a b:cordoned",
			create: "a",
			status: "running: desired 1, active 1, succeeded 0, failed 0",
		},
		"tainted": {
			why:    "a taint that is not tolerated keeps pods away",
			nodes:  "a b:tainted c:evicting d:preferred",
			create: "a d",
			status: "running: desired 2, active 2, succeeded 0, failed 0",
		},
		"too small": {
			why:    "a node that cannot allocate the requests gets no pod",
			job:    changes{requesting("2")},
			nodes:  "a b:small",
			create: "a",
			status: "running: desired 1, active 1, succeeded 0, failed 0",
		},
		"affinity": {
			why:    "the node selector of the template decides",
			job:    changes{selecting("hdd")},
			nodes:  "a b:hdd",
			create: "b",
			status: "running: desired 1, active 1, succeeded 0, failed 0",
		},
		"sorted": {
			why:    "nodes are served by name",
			job:    changes{parallelism("2")},
			nodes:  "c a b",
			create: "a b",
			status: "running: desired 3, active 2, succeeded 0, failed 0",
		},
		"no node": {
			why:    "without a node the job waits",
			nodes:  "a:cordoned",
			status: "running: desired 0, active 0, succeeded 0, failed 0",
		},
		"completed": {
			why:    "every pod has ended",
			nodes:  "a b",
			pods:   "a=succeeded b=succeeded",
			status: "completed: desired 2, active 0, succeeded 2, failed 0",
			turn:   "JobComplete",
			first:  true,
		},
		"completed but for one": {
			why:    "one pod still runs",
			nodes:  "a b",
			pods:   "a=succeeded b=running",
			status: "running: desired 2, active 1, succeeded 1, failed 0",
		},
		"never": {
			why:    "the job serves nodes that join later",
			job:    changes{never},
			nodes:  "a b c",
			pods:   "a=succeeded b=succeeded",
			create: "c",
			status: "running: desired 3, active 1, succeeded 2, failed 0",
		},
		"never idle": {
			why:    "the job does not complete",
			job:    changes{never},
			nodes:  "a b",
			pods:   "a=succeeded b=succeeded",
			status: "running: desired 2, active 0, succeeded 2, failed 0",
		},
		"continue": {
			why:    "a failed pod stops nothing",
			job:    changes{policy(goOn)},
			nodes:  "a b c",
			pods:   "a=succeeded b=failed",
			create: "c",
			status: "running: desired 3, active 1, succeeded 1, failed 1",
		},
		"unknown policy": {
			why:    "what is unknown continues",
			job:    changes{policy("Retry")},
			nodes:  "a b c",
			pods:   "a=succeeded b=failed",
			create: "c",
			status: "running: desired 3, active 1, succeeded 1, failed 1",
		},
		"fail fast": {
			why:    "a failed pod ends the job",
			job:    changes{policy(failFast)},
			nodes:  "a b c",
			pods:   "a=succeeded b=failed",
			status: "failed: desired 3, active 0, succeeded 1, failed 1",
			turn:   "FailedPodFound",
			first:  true,
		},
		"fail fast stops pods": {
			why:    "pods that run are deleted, and count as failed",
			job:    changes{policy(failFast)},
			nodes:  "a b c",
			pods:   "a=running b=failed c=succeeded",
			remove: "check-0",
			status: "failed: desired 3, active 0, succeeded 1, failed 2",
			turn:   "FailedPodFound",
			first:  true,
		},
		"fail fast with never": {
			why:    "such a job fails, too",
			job:    changes{never, policy(failFast)},
			nodes:  "a b",
			pods:   "a=failed b=running",
			remove: "check-1",
			status: "failed: desired 2, active 0, succeeded 0, failed 2",
			turn:   "FailedPodFound",
			first:  true,
		},
		"pause": {
			why:    "a failed pod pauses the job",
			job:    changes{policy(pause)},
			nodes:  "a b c",
			pods:   "a=succeeded b=failed",
			status: "paused: desired 3, active 0, succeeded 1, failed 1",
			turn:   "Paused",
		},
		"paused already": {
			why:    "the pause is announced once",
			job:    changes{policy(pause), phase("paused")},
			nodes:  "a b c",
			pods:   "a=succeeded b=failed",
			status: "paused: desired 3, active 0, succeeded 1, failed 1",
		},
		"pause ends": {
			why:    "the failed pod was deleted",
			job:    changes{policy(pause), phase("paused")},
			nodes:  "a b",
			pods:   "a=succeeded",
			create: "b",
			status: "running: desired 2, active 1, succeeded 1, failed 0",
			turn:   "Continue",
		},
		"paused by the user": {
			why:    "pods that run go on",
			job:    changes{paused, parallelism("50%")},
			nodes:  "a b c d",
			pods:   "a=running",
			status: "paused: desired 4, active 1, succeeded 0, failed 0",
		},
		"paused at its end": {
			why:    "a paused job does not complete",
			job:    changes{paused},
			nodes:  "a",
			pods:   "a=succeeded",
			status: "paused: desired 1, active 0, succeeded 1, failed 0",
		},
		"paused and failing": {
			why:    "a paused job does not fail",
			job:    changes{paused, deadline(0)},
			nodes:  "a",
			pods:   "a=failed",
			status: "paused: desired 1, active 0, succeeded 0, failed 1",
		},
		"paused and cordoned": {
			why:    "a paused job deletes nothing",
			job:    changes{paused},
			nodes:  "a:evicting",
			pods:   "a=running",
			status: "paused: desired 0, active 1, succeeded 0, failed 0",
		},
		"deadline": {
			why:    "a job that takes too long fails",
			job:    changes{deadline(0), policy(goOn)},
			nodes:  "a b",
			pods:   "a=running b=running",
			remove: "check-0 check-1",
			status: "failed: desired 2, active 0, succeeded 0, failed 2",
			turn:   "DeadlineExceeded",
			first:  true,
		},
		"deadline below zero": {
			why:    "it has passed",
			job:    changes{deadline(-7)},
			nodes:  "a",
			pods:   "a=running",
			remove: "check-0",
			status: "failed: desired 1, active 0, succeeded 0, failed 1",
			turn:   "DeadlineExceeded",
			first:  true,
		},
		"deadline of never": {
			why:    "it does not apply",
			job:    changes{never, deadline(0)},
			nodes:  "a",
			pods:   "a=running",
			status: "running: desired 1, active 1, succeeded 0, failed 0",
		},
		"deadline of anything": {
			why:    "an unknown completion policy is Always",
			job:    changes{anything, deadline(0)},
			nodes:  "a",
			pods:   "a=running",
			remove: "check-0",
			status: "failed: desired 1, active 0, succeeded 0, failed 1",
			turn:   "DeadlineExceeded",
			first:  true,
		},
		"too many": {
			why:    "a lower parallelism deletes no pod",
			job:    changes{parallelism("1")},
			nodes:  "a b c",
			pods:   "a=running b=running",
			status: "running: desired 3, active 2, succeeded 0, failed 0",
		},
		"finished and cordoned": {
			why:    "a pod that ended stays, whatever its node",
			nodes:  "a:cordoned b:evicting c",
			pods:   "a=succeeded b=succeeded",
			create: "c",
			status: "running: desired 3, active 1, succeeded 2, failed 0",
		},
		"running and cordoned": {
			why:    "a cordon does not end what runs",
			nodes:  "a:cordoned b:tainted c:small",
			pods:   "a=running b=running c=running",
			status: "running: desired 3, active 3, succeeded 0, failed 0",
		},
		"running and evicted": {
			why:    "a taint with NoExecute does",
			nodes:  "a:evicting b",
			pods:   "a=running b=running",
			remove: "check-0",
			status: "running: desired 1, active 1, succeeded 0, failed 0",
		},
		"running elsewhere": {
			why:    "so does another label of the node",
			job:    changes{selecting("ssd")},
			nodes:  "a:hdd b",
			pods:   "a=running b=running",
			remove: "check-0",
			status: "running: desired 1, active 1, succeeded 0, failed 0",
		},
		"pending and cordoned": {
			why:    "a pod that has not started is withdrawn",
			nodes:  "a:cordoned b",
			pods:   "a=pending b=pending",
			remove: "check-0",
			status: "running: desired 1, active 1, succeeded 0, failed 0",
		},
		"withdrawn at the end": {
			why:    "the rest is complete",
			nodes:  "a:cordoned b",
			pods:   "a=pending b=succeeded",
			remove: "check-0",
			status: "completed: desired 1, active 0, succeeded 1, failed 0",
			turn:   "JobComplete",
			first:  true,
		},
		"node gone": {
			why:    "a pod waits for a node that does not exist",
			job:    changes{parallelism("1")},
			nodes:  "b",
			pods:   "a=pending",
			create: "b",
			remove: "check-0",
			status: "running: desired 1, active 1, succeeded 0, failed 0",
		},
		"node of a running pod": {
			why:    "the garbage collector deletes the pod",
			job:    changes{parallelism("1")},
			nodes:  "b",
			pods:   "a=running",
			create: "b",
			status: "running: desired 1, active 2, succeeded 0, failed 0",
		},
		"gone at the end": {
			why:    "a node that does not exist is not waited for",
			nodes:  "b",
			pods:   "a=running b=succeeded",
			status: "completed: desired 1, active 1, succeeded 1, failed 0",
			turn:   "JobComplete",
			first:  true,
		},
		"ending": {
			why:    "a node whose pod was deleted runs it again, and is waited for",
			nodes:  "a b",
			pods:   "a=ending b=succeeded",
			status: "running: desired 2, active 0, succeeded 1, failed 0",
		},
		"ending and cordoned": {
			why:    "a node that gets no other pod is not waited for",
			nodes:  "a:cordoned b",
			pods:   "a=ending b=succeeded",
			status: "completed: desired 1, active 0, succeeded 1, failed 0",
			turn:   "JobComplete",
			first:  true,
		},
		"restarts": {
			why:    "as many restarts as allowed",
			job:    changes{restarting(2)},
			nodes:  "a",
			pods:   "a=2",
			status: "running: desired 1, active 1, succeeded 0, failed 0",
		},
		"too many restarts": {
			why:    "one more fails the pod, which stays with its log",
			job:    changes{restarting(2)},
			nodes:  "a b",
			pods:   "a=3 b=running",
			remove: "check-1",
			status: "failed: desired 2, active 0, succeeded 0, failed 2",
			turn:   "FailedPodFound",
			first:  true,
		},
		"restarts at the end": {
			why:    "the job waits for a pod that retries",
			job:    changes{restarting(0), policy(goOn)},
			nodes:  "a b",
			pods:   "a=1 b=succeeded",
			status: "running: desired 2, active 0, succeeded 1, failed 1",
		},
		"restarts alone": {
			why:    "also where no other pod runs",
			job:    changes{restarting(0), policy(goOn)},
			nodes:  "a",
			pods:   "a=1",
			status: "running: desired 1, active 0, succeeded 0, failed 1",
		},
		"restarts and taints": {
			why:    "a pod that retries leaves a node as any other",
			job:    changes{restarting(0), policy(goOn)},
			nodes:  "a:evicting b",
			pods:   "a=1 b=running",
			remove: "check-0",
			status: "running: desired 1, active 1, succeeded 0, failed 1",
		},
		"restarts too long": {
			why:    "the deadline deletes active pods alone",
			job:    changes{restarting(0), policy(goOn), deadline(0)},
			nodes:  "a b",
			pods:   "a=1 b=running",
			remove: "check-1",
			status: "failed: desired 2, active 0, succeeded 0, failed 2",
			turn:   "DeadlineExceeded",
			first:  true,
		},
		"restarts meanwhile": {
			why:    "a pod that retries does not count as active",
			job:    changes{restarting(2), policy(goOn)},
			nodes:  "a b",
			pods:   "a=3 b=running",
			status: "running: desired 2, active 1, succeeded 0, failed 1",
		},
		"two on a node": {
			why:    "both stay",
			nodes:  "a b",
			pods:   "a=running a=succeeded b=running",
			status: "running: desired 2, active 2, succeeded 1, failed 0",
		},
		"two that run": {
			why:    "both count as active",
			job:    changes{parallelism("2")},
			nodes:  "a b",
			pods:   "a=pending a=running",
			status: "running: desired 2, active 2, succeeded 0, failed 0",
		},
		"two, and one ended": {
			why:    "the node waits for both",
			nodes:  "a b",
			pods:   "a=succeeded a=running b=succeeded",
			status: "running: desired 2, active 1, succeeded 2, failed 0",
		},
		"two that leave": {
			why:    "each one is judged",
			nodes:  "a:evicting b",
			pods:   "a=running b=running a=running",
			remove: "check-0 check-2",
			status: "running: desired 1, active 1, succeeded 0, failed 0",
		},
		"two, one leaves": {
			why:    "a node where a pod has ended has run",
			nodes:  "a:evicting b",
			pods:   "a=running a=succeeded b=succeeded",
			remove: "check-0",
			status: "completed: desired 2, active 0, succeeded 2, failed 0",
			turn:   "JobComplete",
			first:  true,
		},
		"resumed": {
			why:    "a job that completed, and now never does",
			job:    changes{ended(v1beta1.JobComplete, 0), never},
			nodes:  "a b",
			pods:   "a=succeeded",
			create: "b",
			status: "running: desired 2, active 1, succeeded 1, failed 0",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.job...)
			pass := planOf(snapshot{job: job, nodes: newNodes(c.nodes), pods: newPods(job, c.pods), now: epoch()})
			status := concluded(pass)
			turn := ""
			if pass.turn != nil {
				turn = pass.turn.Code
			}
			got := []any{created(pass), deleted(pass), countersOf(status), turn, pass.ends}
			want := []any{c.create, c.remove, c.status, c.turn, c.first}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\nnotes %v", c.why, diff, pass.notes)
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

func selecting(disk string) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.Template.Spec.NodeSelector = map[string]string{"disk": disk} }
}

func anything(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.Type = "Sometimes" }
