package broadcast_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/eligible"
	"github.com/kruisekit/kruisekit/internal/broadcast"
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
		"parallelism":           {"two pods are active at once", changes{parallelism("2")}, "a b c", "a=running", "b", "", "running: desired 3, active 2, succeeded 0, failed 0", "", false},
		"percentage":            {"40% of five is two", changes{parallelism("40%")}, "a b c d e", "a=running", "b", "", "running: desired 5, active 2, succeeded 0, failed 0", "", false},
		"percentage rounded":    {"a percentage is rounded up", changes{parallelism("50%")}, "a b c d e", "", "a b c", "", "running: desired 5, active 3, succeeded 0, failed 0", "", false},
		"none at once":          {"parallelism 0 creates no pod", changes{parallelism("0%")}, "a b", "", "", "", "running: desired 2, active 0, succeeded 0, failed 0", "", false},
		"below zero":            {"no number is too low", changes{parallelism("-2147483648")}, "a b c", "a=running", "", "", "running: desired 3, active 1, succeeded 0, failed 0", "", false},
		"cordoned":              {"a cordoned node gets no pod", nil, "a b:cordoned", "", "a", "", "running: desired 1, active 1, succeeded 0, failed 0", "", false},
		"tainted":               {"a taint that is not tolerated keeps pods away", nil, "a b:tainted c:evicting d:preferred", "", "a d", "", "running: desired 2, active 2, succeeded 0, failed 0", "", false},
		"too small":             {"a node that cannot allocate the requests gets no pod", changes{requesting("2")}, "a b:small", "", "a", "", "running: desired 1, active 1, succeeded 0, failed 0", "", false},
		"affinity":              {"the node selector of the template decides", changes{selecting("hdd")}, "a b:hdd", "", "b", "", "running: desired 1, active 1, succeeded 0, failed 0", "", false},
		"sorted":                {"nodes are served by name", changes{parallelism("2")}, "c a b", "", "a b", "", "running: desired 3, active 2, succeeded 0, failed 0", "", false},
		"no node":               {"without a node the job waits", nil, "a:cordoned", "", "", "", "running: desired 0, active 0, succeeded 0, failed 0", "", false},
		"completed":             {"every pod has ended", nil, "a b", "a=succeeded b=succeeded", "", "", "completed: desired 2, active 0, succeeded 2, failed 0", "JobComplete", true},
		"completed but for one": {"one pod still runs", nil, "a b", "a=succeeded b=running", "", "", "running: desired 2, active 1, succeeded 1, failed 0", "", false},
		"never":                 {"the job serves nodes that join later", changes{never}, "a b c", "a=succeeded b=succeeded", "c", "", "running: desired 3, active 1, succeeded 2, failed 0", "", false},
		"never idle":            {"the job does not complete", changes{never}, "a b", "a=succeeded b=succeeded", "", "", "running: desired 2, active 0, succeeded 2, failed 0", "", false},
		"continue":              {"a failed pod stops nothing", changes{policy(goOn)}, "a b c", "a=succeeded b=failed", "c", "", "running: desired 3, active 1, succeeded 1, failed 1", "", false},
		"unknown policy":        {"what is unknown continues", changes{policy("Retry")}, "a b c", "a=succeeded b=failed", "c", "", "running: desired 3, active 1, succeeded 1, failed 1", "", false},
		"fail fast":             {"a failed pod ends the job", changes{policy(failFast)}, "a b c", "a=succeeded b=failed", "", "", "failed: desired 3, active 0, succeeded 1, failed 1", "FailedPodFound", true},
		"fail fast stops pods":  {"pods that run are deleted, and count as failed", changes{policy(failFast)}, "a b c", "a=running b=failed c=succeeded", "", "check-0", "failed: desired 3, active 0, succeeded 1, failed 2", "FailedPodFound", true},
		"fail fast with never":  {"such a job fails, too", changes{never, policy(failFast)}, "a b", "a=failed b=running", "", "check-1", "failed: desired 2, active 0, succeeded 0, failed 2", "FailedPodFound", true},
		"pause":                 {"a failed pod pauses the job", changes{policy(pause)}, "a b c", "a=succeeded b=failed", "", "", "paused: desired 3, active 0, succeeded 1, failed 1", "Paused", false},
		"paused already":        {"the pause is announced once", changes{policy(pause), phase("paused")}, "a b c", "a=succeeded b=failed", "", "", "paused: desired 3, active 0, succeeded 1, failed 1", "", false},
		"pause ends":            {"the failed pod was deleted", changes{policy(pause), phase("paused")}, "a b", "a=succeeded", "b", "", "running: desired 2, active 1, succeeded 1, failed 0", "Continue", false},
		"paused by the user":    {"pods that run go on", changes{paused, parallelism("50%")}, "a b c d", "a=running", "", "", "paused: desired 4, active 1, succeeded 0, failed 0", "", false},
		"paused at its end":     {"a paused job does not complete", changes{paused}, "a", "a=succeeded", "", "", "paused: desired 1, active 0, succeeded 1, failed 0", "", false},
		"paused and failing":    {"a paused job does not fail", changes{paused, deadline(0)}, "a", "a=failed", "", "", "paused: desired 1, active 0, succeeded 0, failed 1", "", false},
		"paused and cordoned":   {"a paused job deletes nothing", changes{paused}, "a:evicting", "a=running", "", "", "paused: desired 0, active 1, succeeded 0, failed 0", "", false},
		"deadline":              {"a job that takes too long fails", changes{deadline(0), policy(goOn)}, "a b", "a=running b=running", "", "check-0 check-1", "failed: desired 2, active 0, succeeded 0, failed 2", "DeadlineExceeded", true},
		"deadline below zero":   {"it has passed", changes{deadline(-7)}, "a", "a=running", "", "check-0", "failed: desired 1, active 0, succeeded 0, failed 1", "DeadlineExceeded", true},
		"deadline of never":     {"it does not apply", changes{never, deadline(0)}, "a", "a=running", "", "", "running: desired 1, active 1, succeeded 0, failed 0", "", false},
		"deadline of anything":  {"an unknown completion policy is Always", changes{anything, deadline(0)}, "a", "a=running", "", "check-0", "failed: desired 1, active 0, succeeded 0, failed 1", "DeadlineExceeded", true},
		"too many":              {"a lower parallelism deletes no pod", changes{parallelism("1")}, "a b c", "a=running b=running", "", "", "running: desired 3, active 2, succeeded 0, failed 0", "", false},
		"finished and cordoned": {"a pod that ended stays, whatever its node", nil, "a:cordoned b:evicting c", "a=succeeded b=succeeded", "c", "", "running: desired 3, active 1, succeeded 2, failed 0", "", false},
		"running and cordoned":  {"a cordon does not end what runs", nil, "a:cordoned b:tainted c:small", "a=running b=running c=running", "", "", "running: desired 3, active 3, succeeded 0, failed 0", "", false},
		"running and evicted":   {"a taint with NoExecute does", nil, "a:evicting b", "a=running b=running", "", "check-0", "running: desired 1, active 1, succeeded 0, failed 0", "", false},
		"running elsewhere":     {"so does another label of the node", changes{selecting("ssd")}, "a:hdd b", "a=running b=running", "", "check-0", "running: desired 1, active 1, succeeded 0, failed 0", "", false},
		"pending and cordoned":  {"a pod that has not started is withdrawn", nil, "a:cordoned b", "a=pending b=pending", "", "check-0", "running: desired 1, active 1, succeeded 0, failed 0", "", false},
		"withdrawn at the end":  {"the rest is complete", nil, "a:cordoned b", "a=pending b=succeeded", "", "check-0", "completed: desired 1, active 0, succeeded 1, failed 0", "JobComplete", true},
		"node gone":             {"a pod waits for a node that does not exist", changes{parallelism("1")}, "b", "a=pending", "b", "check-0", "running: desired 1, active 1, succeeded 0, failed 0", "", false},
		"node of a running pod": {"the garbage collector deletes the pod", changes{parallelism("1")}, "b", "a=running", "b", "", "running: desired 1, active 2, succeeded 0, failed 0", "", false},
		"gone at the end":       {"a node that does not exist is not waited for", nil, "b", "a=running b=succeeded", "", "", "completed: desired 1, active 1, succeeded 1, failed 0", "JobComplete", true},
		"ending":                {"a node whose pod was deleted runs it again, and is waited for", nil, "a b", "a=ending b=succeeded", "", "", "running: desired 2, active 0, succeeded 1, failed 0", "", false},
		"ending and cordoned":   {"a node that gets no other pod is not waited for", nil, "a:cordoned b", "a=ending b=succeeded", "", "", "completed: desired 1, active 0, succeeded 1, failed 0", "JobComplete", true},
		"restarts":              {"as many restarts as allowed", changes{restarting(2)}, "a", "a=2", "", "", "running: desired 1, active 1, succeeded 0, failed 0", "", false},
		"too many restarts":     {"one more fails the pod, which stays with its log", changes{restarting(2)}, "a b", "a=3 b=running", "", "check-1", "failed: desired 2, active 0, succeeded 0, failed 2", "FailedPodFound", true},
		"restarts at the end":   {"the job waits for a pod that retries", changes{restarting(0), policy(goOn)}, "a b", "a=1 b=succeeded", "", "", "running: desired 2, active 0, succeeded 1, failed 1", "", false},
		"restarts alone":        {"also where no other pod runs", changes{restarting(0), policy(goOn)}, "a", "a=1", "", "", "running: desired 1, active 0, succeeded 0, failed 1", "", false},
		"restarts and taints":   {"a pod that retries leaves a node as any other", changes{restarting(0), policy(goOn)}, "a:evicting b", "a=1 b=running", "", "check-0", "running: desired 1, active 1, succeeded 0, failed 1", "", false},
		"restarts too long":     {"the deadline deletes active pods alone", changes{restarting(0), policy(goOn), deadline(0)}, "a b", "a=1 b=running", "", "check-1", "failed: desired 2, active 0, succeeded 0, failed 2", "DeadlineExceeded", true},
		"restarts meanwhile":    {"a pod that retries does not count as active", changes{restarting(2), policy(goOn)}, "a b", "a=3 b=running", "", "", "running: desired 2, active 1, succeeded 0, failed 1", "", false},
		"two on a node":         {"both stay", nil, "a b", "a=running a=succeeded b=running", "", "", "running: desired 2, active 2, succeeded 1, failed 0", "", false},
		"two that run":          {"both count as active", changes{parallelism("2")}, "a b", "a=pending a=running", "", "", "running: desired 2, active 2, succeeded 0, failed 0", "", false},
		"two, and one ended":    {"the node waits for both", nil, "a b", "a=succeeded a=running b=succeeded", "", "", "running: desired 2, active 1, succeeded 2, failed 0", "", false},
		"two that leave":        {"each one is judged", nil, "a:evicting b", "a=running b=running a=running", "", "check-0 check-2", "running: desired 1, active 1, succeeded 0, failed 0", "", false},
		"two, one leaves":       {"a node where a pod has ended has run", nil, "a:evicting b", "a=running a=succeeded b=succeeded", "", "check-0", "completed: desired 2, active 0, succeeded 2, failed 0", "JobComplete", true},
		"resumed":               {"a job that completed, and now never does", changes{ended(v1beta1.JobComplete, 0), never}, "a b", "a=succeeded", "b", "", "running: desired 2, active 1, succeeded 1, failed 0", "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.job...)
			pass := plan(t, broadcast.Input{Job: job, Nodes: newNodes(c.nodes), Pods: newPods(job, c.pods), Now: epoch()})
			status := pass.Conclude(len(pass.Create), pass.Delete)
			turn := ""
			if pass.Turn != nil {
				turn = pass.Turn.Code
			}
			got := []any{created(pass), deleted(pass), counters(status), turn, pass.StatusFirst}
			want := []any{c.create, c.remove, c.status, c.turn, c.first}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\nnotes %v", c.why, diff, pass.Notes)
			}
		})
	}
}

func requesting(cpu string) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) {
		j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

func selecting(disk string) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.Template.Spec.NodeSelector = map[string]string{"disk": disk} }
}

func anything(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.Type = "Sometimes" }

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
		"no limit":              {"nothing changes with time", nil, "a=running", 0, 0, false},
		"deadline":              {"the rest of it", changes{deadline(60)}, "a=running", 20 * time.Second, 40 * time.Second, false},
		"deadline and a clock":  {"the clock was set back", changes{deadline(60)}, "a=running", -20 * time.Second, 80 * time.Second, false},
		"deadline far off":      {"no duration holds it", changes{deadline(1 << 62)}, "a=running", 0, 0, false},
		"deadline while paused": {"a paused job has none", changes{deadline(60), paused}, "a=running", 20 * time.Second, 0, false},
		"deadline of a pause":   {"nor has one that a failed pod pauses", changes{deadline(60), policy(pause)}, "a=failed", 20 * time.Second, 0, false},
		"deadline of never":     {"it does not apply", changes{never, deadline(60)}, "a=running", 0, 0, false},
		"time to live":          {"the rest of it", changes{ttl(30), ended(v1beta1.JobComplete, 0)}, "", 29 * time.Second, time.Second, false},
		"time to die":           {"it has passed", changes{ttl(30), ended(v1beta1.JobFailed, 0)}, "", 30 * time.Second, 0, true},
		"no time to live":       {"it has passed at once", changes{ttl(0), ended(v1beta1.JobFailed, 0)}, "", 0, 0, true},
		"kept":                  {"without a time to live the job stays", changes{ended(v1beta1.JobComplete, 0)}, "", time.Hour, 0, false},
		"never dies":            {"a job that never completes stays", changes{never, ttl(0), ended(v1beta1.JobFailed, 0)}, "", time.Hour, 0, false},
		"at the end":            {"the time to live begins", changes{ttl(30)}, "a=succeeded", time.Minute, 30 * time.Second, false},
		"end without a life":    {"the next pass deletes the job", changes{ttl(0)}, "a=succeeded", time.Minute, time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.job...)
			pass := plan(t, broadcast.Input{Job: job, Nodes: newNodes("a"), Pods: newPods(job, c.pods), Now: epoch().Add(c.passed)})
			if pass.RequeueAfter != c.want || pass.DeleteJob != c.deleteJob {
				t.Errorf("%s: after %s, delete %t", c.why, pass.RequeueAfter, pass.DeleteJob)
			}
		})
	}
	job := newJob(ttl(30), ended(v1beta1.JobComplete, 0))
	job.Status.CompletionTime = nil
	if pass := plan(t, broadcast.Input{Job: job, Now: epoch()}); pass.RequeueAfter != 30*time.Second {
		t.Errorf("without a completion time: after %s", pass.RequeueAfter)
	}
	job.Status.Conditions[0].LastTransitionTime = metav1.Time{}
	if pass := plan(t, broadcast.Input{Job: job, Now: epoch()}); pass.RequeueAfter != 0 || pass.DeleteJob {
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
		"cleaned":   {"what never started goes, what runs on a lost node stays", changes{ended(v1beta1.JobComplete, 0)}, "a=pending x=running", "check-0"},
		"failed":    {"all that runs goes, after a restart as well", changes{ended(v1beta1.JobFailed, 0)}, "a=running b=failed c=ending d=succeeded", "check-0"},
		"restarts":  {"a pod that restarts too often stays", changes{restarting(0), ended(v1beta1.JobComplete, 0)}, "a=1 b=succeeded", ""},
		"retries":   {"also after a failure", changes{restarting(0), ended(v1beta1.JobFailed, 0)}, "a=1 b=running", "check-1"},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.job...)
			pass := plan(t, broadcast.Input{Job: job, Nodes: newNodes("a b c d e"), Pods: newPods(job, c.pods), Now: epoch()})
			if deleted(pass) != c.remove || len(pass.Create) > 0 || pass.StatusFirst || pass.Turn != nil {
				t.Errorf("%s: deletes %q, creates %q", c.why, deleted(pass), created(pass))
			}
			if diff := cmp.Diff(job.Status, pass.Status); diff != "" {
				t.Errorf("the status changes (-was +is):\n%s", diff)
			}
		})
	}
	deletedJob := newJob(func(j *v1beta1.BroadcastJob) { j.DeletionTimestamp = &metav1.Time{Time: epoch()} })
	if pass := plan(t, broadcast.Input{Job: deletedJob, Nodes: newNodes("a"), Now: epoch()}); len(pass.Create) > 0 || pass.RequeueAfter != 0 {
		t.Errorf("a job that is deleted: %+v", pass)
	}
}

// A new job gets a start, which is that of its oldest pod where an earlier status was lost.
func TestStart(t *testing.T) {
	job := newJob(func(j *v1beta1.BroadcastJob) { j.Status = v1beta1.BroadcastJobStatus{} })
	later := epoch().Add(time.Minute)
	pass := plan(t, broadcast.Input{Job: job, Nodes: newNodes("a"), Now: later})
	if !pass.Status.StartTime.Time.Equal(later) || pass.Status.Phase != v1beta1.PhaseRunning {
		t.Errorf("got %+v", pass.Status)
	}
	pass = plan(t, broadcast.Input{Job: job, Nodes: newNodes("a"), Pods: newPods(job, "a=running"), Now: later})
	if !pass.Status.StartTime.Time.Equal(epoch()) {
		t.Errorf("with a pod of %s the job starts at %s", epoch(), pass.Status.StartTime)
	}
}

// The end replaces a condition of its type, and is announced in the words of the reference.
func TestEnd(t *testing.T) {
	job := newJob(func(j *v1beta1.BroadcastJob) {
		j.Status.Conditions = []v1beta1.JobCondition{{Type: v1beta1.JobComplete, Status: corev1.ConditionFalse}, {Type: "Other"}}
	})
	pass := plan(t, broadcast.Input{Job: job, Nodes: newNodes("a"), Pods: newPods(job, "a=succeeded"), Now: epoch()})
	now := metav1.NewTime(epoch())
	want := []v1beta1.JobCondition{{Type: "Other"}, {
		Type: v1beta1.JobComplete, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now, Reason: "Complete",
		Message: "Job completed, 1 pods succeeded, 0 pods failed",
	}}
	if diff := cmp.Diff(want, pass.Status.Conditions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !pass.Status.CompletionTime.Equal(&now) || pass.Turn.Text != "Job shop/check is completed, 1 pods succeeded, 0 pods failed" {
		t.Errorf("completed at %s, %q", pass.Status.CompletionTime, pass.Turn.Text)
	}
}

func TestNewPod(t *testing.T) {
	job := newJob(func(j *v1beta1.BroadcastJob) {
		j.Spec.Template.Labels = map[string]string{"app": "check", "broadcastjob-name": "another"}
		j.Spec.Template.Annotations, j.Spec.Template.Finalizers = map[string]string{"a": "b"}, []string{"example.com/hold"}
		j.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}, NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}},
			}}},
		}}
	})
	before := job.DeepCopy()
	in := broadcast.Input{Job: job, Nodes: newNodes("a"), Now: epoch()}
	pod := plan(t, in).Create[0]
	want := metav1.ObjectMeta{
		Namespace: "shop", Name: broadcast.PodName(job, "a"),
		Labels:      map[string]string{"app": "check", "broadcastjob-name": "check", "broadcastjob-controller-uid": "uid-check"},
		Annotations: map[string]string{"a": "b"}, Finalizers: []string{"example.com/hold"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps.kruise.io/v1beta1", Kind: "BroadcastJob", Name: "check", UID: "uid-check", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}
	if diff := cmp.Diff(want, pod.ObjectMeta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pod.Spec.NodeName != "" || eligible.NodeOf(pod) != "a" || pod.Spec.Affinity.PodAntiAffinity == nil {
		t.Errorf("spec %+v", pod.Spec)
	}
	in.Bind = true
	bound := plan(t, in).Create[0]
	if bound.Spec.NodeName != "a" || len(bound.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields) > 0 {
		t.Errorf("bound spec %+v", bound.Spec)
	}
	if diff := cmp.Diff(before, job); diff != "" {
		t.Errorf("the job was changed:\n%s", diff)
	}
}

func TestPodName(t *testing.T) {
	job := newJob()
	names := map[string]bool{}
	for _, node := range []string{"a", "b", strings.Repeat("n", 253)} {
		names[broadcast.PodName(job, node)] = true
	}
	again := newJob(func(j *v1beta1.BroadcastJob) { j.UID = "uid-again" })
	names[broadcast.PodName(again, "a")] = true
	if len(names) != 4 {
		t.Errorf("names repeat: %v", names)
	}
	long := newJob(func(j *v1beta1.BroadcastJob) { j.Name = strings.Repeat("x", 51) + "-" + strings.Repeat("y", 11) })
	if name := broadcast.PodName(long, "a"); len(name) > 63 || strings.Contains(name, "--") || !strings.HasPrefix(name, strings.Repeat("x", 51)+"-") {
		t.Errorf("name %q", name)
	}
}

// Notes explain what a job waits for.
func TestNotes(t *testing.T) {
	for name, c := range map[string]struct {
		job         changes
		nodes, pods string
		want        string
	}{
		"parallelism": {changes{parallelism("1")}, "a b c d e f", "", "ParallelismReached: 5 nodes wait for others, at most 1 pods are active: b, c, d and 2 more"},
		"skipped":     {nil, "a b:cordoned c:cordoned", "", "NodeUnschedulable: 2 nodes get no pod (the node is unschedulable): b, c"},
		"no node":     {nil, "", "", "NoNodeFits: no node fits the pod template"},
		"too many":    {changes{parallelism("0")}, "a", "a=running", "TooManyActivePods: 1 pods are active, the parallelism is 0"},
		"duplicate":   {nil, "a", "a=running a=pending", "DuplicatePodCreatedOnSameNode check-1: node a has pod check-0"},
		"two ended":   {nil, "a", "a=succeeded a=running", "DuplicatePodCreatedOnSameNode check-0: node a has pod check-1"},
		"evicted":     {nil, "a:evicting", "a=running", "NodeNoLongerFits check-0: node a does not fit any more (TaintNotTolerated)"},
		"gone":        {nil, "b", "a=pending", "NodeGone check-0: the pod waits for node a, which does not exist"},
		"restarts":    {changes{restarting(1), policy(goOn)}, "a b", "a=2", "RestartLimitExceeded check-0: the containers have restarted 2 times, the limit is 1"},
		"paused":      {changes{paused}, "a", "", "Paused: spec.paused is set"},
		"pause":       {changes{policy(pause)}, "a", "a=failed", "Paused: 1 pods failed (check-0), delete them to continue"},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.job...)
			pass := plan(t, broadcast.Input{Job: job, Nodes: newNodes(c.nodes), Pods: newPods(job, c.pods), Now: epoch()})
			var all []string
			for _, n := range pass.Notes {
				all = append(all, n.String())
			}
			if text := strings.Join(all, "\n"); !strings.Contains(text, c.want) {
				t.Errorf("want %q in\n%s", c.want, text)
			}
		})
	}
}

func TestBadParallelism(t *testing.T) {
	job := newJob(func(j *v1beta1.BroadcastJob) { j.Spec.Parallelism = ptr.To(intstr.FromString("many")) })
	if _, err := broadcast.Plan(broadcast.Input{Job: job, Now: epoch()}); err == nil || !strings.HasPrefix(err.Error(), "spec.parallelism: ") {
		t.Errorf("got %v", err)
	}
}
