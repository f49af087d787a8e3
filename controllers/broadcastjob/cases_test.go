package broadcastjob

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

func epoch() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// newJob returns a job that has begun, with its defaults.
func newJob(change ...func(*v1beta1.BroadcastJob)) *v1beta1.BroadcastJob {
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "check", UID: "uid-check"}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "check:1"}}
	job.Status = v1beta1.BroadcastJobStatus{Phase: v1beta1.PhaseRunning, StartTime: &metav1.Time{Time: epoch()}}
	for _, c := range change {
		c(job)
	}
	job.Default()
	return job
}

func parallelism(v string) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.Parallelism = ptr.To(intstr.Parse(v)) }
}

func policy(p v1beta1.FailurePolicyType) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.FailurePolicy.Type = p }
}

func phase(p v1beta1.BroadcastJobPhase) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Status.Phase = p }
}

func deadline(seconds int64) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = &seconds }
}

func ttl(seconds int32) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.TTLSecondsAfterFinished = &seconds }
}

func never(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.Type = v1beta1.Never }

func paused(j *v1beta1.BroadcastJob) { j.Spec.Paused = true }

func restarting(limit int32) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) {
		j.Spec.Template.Spec.RestartPolicy, j.Spec.FailurePolicy.RestartLimit = corev1.RestartPolicyOnFailure, limit
	}
}

// ended makes the job one that ended some time ago.
func ended(condition v1beta1.JobConditionType, ago time.Duration) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) {
		at := metav1.NewTime(epoch().Add(-ago))
		j.Status.Phase, j.Status.CompletionTime = v1beta1.PhaseCompleted, &at
		if condition == v1beta1.JobFailed {
			j.Status.Phase = v1beta1.PhaseFailed
		}
		j.Status.Conditions = []v1beta1.JobCondition{{
			Type: condition, Status: corev1.ConditionTrue, Reason: string(condition), LastTransitionTime: at,
		}}
	}
}

// newNodes returns nodes by names, each with changes after a colon: cordoned, tainted (NoSchedule), evicting
// (NoExecute), hdd, small.
func newNodes(names string) []*corev1.Node {
	var nodes []*corev1.Node
	for name := range strings.FieldsSeq(names) {
		name, change, _ := strings.Cut(name, ":")
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": "ssd"}}}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("4"),
			corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}
		switch change {
		case "cordoned":
			node.Spec.Unschedulable = true
		case "tainted":
			node.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		case "preferred":
			node.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectPreferNoSchedule}}
		case "evicting":
			node.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
		case "hdd":
			node.Labels["disk"] = "hdd"
		case "small":
			node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1")
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// newPods returns pods of a job, as node=state. The states are pending, running, succeeded, failed, ending, and
// restarts as a number.
func newPods(job *v1beta1.BroadcastJob, states string) []*corev1.Pod {
	var pods []*corev1.Pod
	for i, text := range slices.Collect(strings.FieldsSeq(states)) {
		node, state, _ := strings.Cut(text, "=")
		pod := &corev1.Pod{Spec: *job.Spec.Template.Spec.DeepCopy(), ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: fmt.Sprintf("check-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)),
			CreationTimestamp: metav1.NewTime(epoch()),
		}}
		eligible.Pin(&pod.Spec, node)
		if state != "pending" {
			pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
		}
		switch state {
		case "pending", "running":
		case "succeeded":
			pod.Status.Phase = corev1.PodSucceeded
		case "failed":
			pod.Status.Phase = corev1.PodFailed
		case "ending":
			pod.DeletionTimestamp = &metav1.Time{Time: epoch()}
		default:
			var restarts int32
			_, _ = fmt.Sscan(state, &restarts)
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", RestartCount: restarts / 2}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: restarts - restarts/2}}
		}
		pods = append(pods, pod)
	}
	return pods
}

func planOf(s snapshot) *plan { return newPlan(&s) }

// concluded is the status after all pods of a plan are deleted and created.
func concluded(p *plan) v1beta1.BroadcastJobStatus {
	for _, m := range p.remove {
		_ = p.deleted(m, nil)
	}
	for _, pod := range p.create {
		_ = p.created(pod.Name, false, nil)
	}
	return p.status
}

// created are the nodes that get a pod.
func created(pass *plan) string {
	var names []string
	for _, pod := range pass.create {
		names = append(names, eligible.NodeOf(pod))
	}
	return strings.Join(names, " ")
}

func deleted(pass *plan) string {
	var names []string
	for _, d := range pass.remove {
		names = append(names, d.Name)
	}
	return strings.Join(names, " ")
}

// counters of a status.
func countersOf(s v1beta1.BroadcastJobStatus) string {
	return fmt.Sprintf("%s: desired %d, active %d, succeeded %d, failed %d",
		s.Phase, s.Desired, s.Active, s.Succeeded, s.Failed)
}
