package advancedcronjob

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// status returns the status after the answers.
func (p *plan) status() v1beta1.AdvancedCronJobStatus {
	was := &p.job.Status
	status := v1beta1.AdvancedCronJobStatus{Type: p.kind.name, LastScheduleTime: was.LastScheduleTime}
	if recorded := status.LastScheduleTime; !p.Last.IsZero() && (recorded == nil || !recorded.Time.Equal(p.Last)) {
		status.LastScheduleTime = &metav1.Time{Time: p.Last}
	}
	children := slices.DeleteFunc(slices.Concat(p.children, p.created), func(c child) bool { return p.gone[c.GetUID()] })
	listed := map[types.UID]corev1.ObjectReference{}
	for _, ref := range was.Active {
		listed[ref.UID] = ref
	}
	for _, c := range activeOf(children) {
		if len(status.Active) == maxActive {
			break
		}
		ref, known := listed[c.GetUID()]
		if !known {
			ref = corev1.ObjectReference{
				APIVersion: c.GetAPIVersion(), Kind: c.GetKind(), Namespace: c.GetNamespace(), Name: c.GetName(),
				UID: c.GetUID(), ResourceVersion: c.GetResourceVersion(),
			}
		}
		// A child whose resource version alone has changed is not written again.
		status.Active = append(status.Active, ref)
	}
	return status
}

// finished returns the children that the stored status lists as active, and that have ended.
func finished(s *snapshot) []child {
	return slices.DeleteFunc(slices.Clone(s.children), func(c child) bool {
		listed := func(ref corev1.ObjectReference) bool { return ref.UID == c.GetUID() }
		return c.state == active || !slices.ContainsFunc(s.job.Status.Active, listed)
	})
}

// kind is what the engine must know of a kind of children.
type kind struct {
	name v1beta1.TemplateKind
	gvk  schema.GroupVersionKind
	// member of spec.template.
	member string
	// ended returns the state that a status reports.
	ended func(status map[string]any) state
}

// state is where a child is.
type state string

// The states of a child.
const (
	active    state = ""
	succeeded state = "Complete"
	failed    state = "Failed"
)

// kinds are those of children, in the order in which templates win where there are several.
func kinds() []kind {
	ours := v1beta1.GroupVersion
	return []kind{
		{v1beta1.JobTemplate, batchv1.SchemeGroupVersion.WithKind("Job"), "jobTemplate", byCondition},
		{v1beta1.ImageListPullJobTemplate, ours.WithKind("ImageListPullJob"), "imageListPullJobTemplate", byCount},
		{v1beta1.BroadcastJobTemplate, ours.WithKind("BroadcastJob"), "broadcastJobTemplate", byCondition},
	}
}

// kindOf returns the kind of the template that an object has. Without a template it is that of BroadcastJobs, as in the
// reference.
func kindOf(t *v1beta1.CronJobTemplate) kind {
	all := kinds()
	switch {
	case t.JobTemplate != nil:
		return all[0]
	case t.ImageListPullJobTemplate != nil:
		return all[1]
	}
	return all[2]
}

// byCondition is for the children that end with a condition.
func byCondition(status map[string]any) state {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["status"] != string(metav1.ConditionTrue) {
			continue
		}
		switch condition["type"] {
		case string(succeeded):
			return succeeded
		case string(failed):
			return failed
		}
	}
	return active
}

// byCount is for the children that end with a time, and count what went well.
func byCount(status map[string]any) state {
	if at, ended := status["completionTime"]; !ended || at == nil {
		return active
	}
	if status["succeeded"] == status["desired"] {
		return succeeded
	}
	return failed
}

// child is a child as a pass sees it.
type child struct {
	*unstructured.Unstructured

	state state
	// started and scheduled are zero where the child does not tell them.
	started, scheduled time.Time
}

// view returns what a pass must know of a child. What cannot be read is as if it were not there.
func (k kind) view(raw *unstructured.Unstructured) child {
	status, _, _ := stored.Value[map[string]any](raw, "status")
	started, _ := status["startTime"].(string)
	return child{
		Unstructured: raw, state: k.ended(status),
		started: parseTime(started), scheduled: parseTime(raw.GetAnnotations()[v1beta1.AdvancedCronJobScheduledAtKey]),
	}
}

func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// terminating reports whether a child is being deleted.
func (c child) terminating() bool { return c.GetDeletionTimestamp() != nil }
