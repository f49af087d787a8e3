package ephemeraljob

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
)

func epoch() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

type change = func(*ephemeralJob)

// newJob returns a job that began a minute ago, for pods with app=web.
func newJob(changes ...change) *v1alpha1.EphemeralJob {
	job := &v1alpha1.EphemeralJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "debug", UID: "uid-debug"}}
	job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	job.Spec.Template.EphemeralContainers = []corev1.EphemeralContainer{container("shell", "")}
	began := metav1.NewTime(epoch().Add(-time.Minute))
	job.Status.StartTime = &began
	job.Status.Conditions = []v1alpha1.EphemeralJobCondition{{
		Type: v1alpha1.EJobInitialized, Status: corev1.ConditionTrue, Reason: "Initialized", LastTransitionTime: began,
	}}
	for _, c := range changes {
		c(job)
	}
	return job
}

// container returns a container of a job; of none where the UID is empty.
func container(name string, owner types.UID) corev1.EphemeralContainer {
	c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: name, Image: "busybox:1",
	}}
	if owner != "" {
		c.Env = []corev1.EnvVar{{Name: kruise.EphemeralContainerEnvKey, Value: string(owner)}}
	}
	return c
}

func parallelism(n int32) change {
	return func(j *v1alpha1.EphemeralJob) { j.Spec.Parallelism = &n }
}
func replicas(n int32) change { return func(j *v1alpha1.EphemeralJob) { j.Spec.Replicas = &n } }
func deadline(n int64) change {
	return func(j *v1alpha1.EphemeralJob) { j.Spec.ActiveDeadlineSeconds = &n }
}

func ttl(n int32) change {
	return func(j *v1alpha1.EphemeralJob) { j.Spec.TTLSecondsAfterFinished = &n }
}

func finalizer(j *v1alpha1.EphemeralJob) {
	j.Finalizers = []string{v1alpha1.EphemeralJobFinalizerKey, "example.com/other"}
}
func deleting(j *v1alpha1.EphemeralJob) { j.DeletionTimestamp = &metav1.Time{Time: epoch()} }
func two(j *v1alpha1.EphemeralJob) {
	j.Spec.Template.EphemeralContainers = append(j.Spec.Template.EphemeralContainers, container("dump", ""))
}

// ended makes the job one that ended some time ago.
func ended(ago time.Duration) change {
	return func(j *v1alpha1.EphemeralJob) {
		j.Status.Phase, j.Status.CompletionTime = v1alpha1.EphemeralJobSucceeded, &metav1.Time{Time: epoch().Add(-ago)}
	}
}

// newPods returns pods as name=states of the containers of the job, in the order of their creation. Other states are
// those of the pod: see newPod.
func newPods(job *v1alpha1.EphemeralJob, text string) []*corev1.Pod {
	var pods []*corev1.Pod
	for i, one := range strings.Fields(text) {
		name, states, _ := strings.Cut(one, "=")
		pod := newPod(job, name, states)
		pod.CreationTimestamp = metav1.NewTime(epoch().Add(time.Duration(i-1000) * time.Second))
		pods = append(pods, pod)
	}
	return pods
}

func newPod(job *v1alpha1.EphemeralJob, name, states string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"},
	}}
	pod.Spec.NodeName, pod.Status.Phase = "node", corev1.PodRunning
	names := []string{"shell", "dump"}
	for state := range strings.SplitSeq(states, ",") {
		own := len(pod.Spec.EphemeralContainers)
		switch state {
		case "", "due":
			continue
		case "unselected":
			pod.Labels["app"] = "db"
			continue
		case "ended":
			pod.Status.Phase = corev1.PodSucceeded
			continue
		case "broken":
			pod.Status.Phase = corev1.PodFailed
			continue
		case "deleting":
			pod.DeletionTimestamp = &metav1.Time{Time: epoch()}
			continue
		case "unbound":
			pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
			continue
		case "taken":
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, container("shell", "uid-other"))
			continue
		case "debugged":
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, container("debugger-1", ""))
			continue
		}
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, container(names[own], job.UID))
		if s, reported := containerStates()[state]; reported {
			pod.Status.EphemeralContainerStatuses = append(pod.Status.EphemeralContainerStatuses,
				corev1.ContainerStatus{Name: names[own], State: s})
		}
	}
	return pod
}

func containerStates() map[string]corev1.ContainerState {
	return map[string]corev1.ContainerState{
		"waiting":   {Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		"pulling":   {Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		"unstarted": {Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError"}},
		"running":   {Running: &corev1.ContainerStateRunning{}},
		"succeeded": {Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(epoch())}},
		"failed":    {Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}},
		"unknown":   {},
	}
}

// result is what a pass has come to.
type result struct {
	Status       v1alpha1.EphemeralJobStatus
	Turn         *note.Note
	Refused      map[types.UID]refusal
	NewlyRefused []note.Note
	RequeueAfter time.Duration
	Err          error
}

func planOf(s snapshot) *plan { return newPlan(&s) }

// answered runs a pass, with the error of each pod that has one, and returns the outcome and the pods that got the
// containers.
func answered(pass *plan, errs map[string]error) (result, []string) {
	var added []string
	for writes := pass.batch(); len(writes) > 0; writes = pass.batch() {
		for _, w := range writes {
			name := w.Object.GetName()
			if errs[name] == nil {
				added = append(added, name)
			}
			pass.added(w, errs[name])
		}
	}
	err := errors.Join(pass.failed...)
	return result{pass.status(), pass.turn, pass.refused, pass.newlyRefused, pass.after, err}, added
}

// picture is an outcome in a line.
func picture(s v1alpha1.EphemeralJobStatus) string {
	var conditions []string
	for _, c := range s.Conditions {
		if c.Type != v1alpha1.EJobInitialized {
			conditions = append(conditions, fmt.Sprintf("%s=%s", c.Type, c.Reason))
		}
	}
	over := ""
	if s.CompletionTime != nil {
		over = " over"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %d/%d/%d/%d/%d%s %s",
		s.Phase, s.Matches, s.Waiting, s.Running, s.Succeeded, s.Failed, over, strings.Join(conditions, " ")))
}

func ptrTo(t time.Time) *metav1.Time { return ptr.To(metav1.NewTime(t)) }
