package advancedcronjob_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/advancedcronjob"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/test/objects"
)

// model runs the reconciler over objects in memory, with a clock that the test moves. It starts at midnight.
type model struct {
	*testing.T
	*objects.Model

	// kind of the children.
	kind v1beta1.TemplateKind
}

func newModel(t *testing.T, kind v1beta1.TemplateKind) *model {
	t.Helper()
	m := &model{T: t, Model: objects.NewModel(t, &v1beta1.AdvancedCronJobList{}, v1beta1.AddToScheme), kind: kind}
	if err := owned.Index(t.Context(), m.Server, &batchv1.Job{}); err != nil { // for all kinds
		t.Fatal(err)
	}
	m.restart(m.Server)
	return m
}

// restart starts another process, which has no memory.
func (m *model) restart(c client.Client) {
	m.Helper()
	r, err := advancedcronjob.New(c, advancedcronjob.Options{
		Now: m.Now, Recorder: m.Server, Live: m.Server, Local: time.UTC,
	})
	if err != nil {
		m.Fatal(err)
	}
	m.Reconciler = r
}

// create creates an object with a child every five minutes, and what changes add.
func (m *model) create(name string, changes ...func(*v1beta1.AdvancedCronJob)) *v1beta1.AdvancedCronJob {
	m.Helper()
	job := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, CreationTimestamp: metav1.Time{Time: m.Clock},
	}}
	job.Spec.Schedule = "*/5 * * * *"
	pods := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "web:1"}},
	}}
	switch m.kind {
	case v1beta1.JobTemplate:
		job.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Name:        "ignored",
				Labels:      map[string]string{"app": "web"},
				Annotations: map[string]string{"note": "kept"},
				Finalizers:  []string{"example.com/ignored"},
			},
			Spec: batchv1.JobSpec{Template: pods},
		}
	case v1beta1.BroadcastJobTemplate:
		job.Spec.Template.BroadcastJobTemplate = &v1beta1.BroadcastJobTemplateSpec{
			Spec: v1beta1.BroadcastJobSpec{Template: pods},
		}
	case v1beta1.ImageListPullJobTemplate:
		job.Spec.Template.ImageListPullJobTemplate = &v1beta1.ImageListPullJobTemplateSpec{
			Spec: v1beta1.ImageListPullJobSpec{Images: []string{"web:1"}},
		}
	}
	for _, change := range changes {
		change(job)
	}
	if err := m.Server.Put(job); err != nil {
		m.Fatal(err)
	}
	m.look(job)
	return job
}

func (m *model) look(o client.Object) {
	m.Helper()
	if err := m.Server.Get(m.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		m.Fatal(err)
	}
}

// change patches the object.
func (m *model) change(job *v1beta1.AdvancedCronJob, changes ...func(*v1beta1.AdvancedCronJob)) {
	m.Helper()
	m.look(job)
	before := job.DeepCopy()
	for _, change := range changes {
		change(job)
	}
	if err := m.Server.Patch(m.Context(), job, client.MergeFrom(before)); err != nil {
		m.Fatal(err)
	}
}

// until moves the clock, and reconciles whenever the reconciler asked to.
func (m *model) until(text string) {
	m.Helper()
	end := clock(text)
	for range 10_000 {
		m.Still()
		if m.Due.IsZero() || !m.Due.Before(end) {
			m.Clock = end
			m.Still()
			return
		}
		m.Clock = m.Due
	}
	m.Fatal("the clock does not get there")
}

// clock is a time of the first day, or of another one.
func clock(text string) time.Time {
	if len(text) <= len("15:04:05") {
		text = "2030-01-01T" + (text + ":00")[:8] + "Z"
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at
}

// children by name.
func (m *model) children() []*unstructured.Unstructured {
	m.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apps.kruise.io/v1beta1")
	if m.kind == v1beta1.JobTemplate {
		list.SetAPIVersion("batch/v1")
	}
	list.SetKind(string(m.kind) + "List")
	if err := m.Server.List(m.Context(), list, client.InNamespace("shop")); err != nil {
		m.Fatal(err)
	}
	all := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

// picture is the times of the children: + succeeded, - failed.
func (m *model) picture() string {
	m.Helper()
	var all []string
	for _, c := range m.children() {
		at := clock(c.GetAnnotations()[v1beta1.AdvancedCronJobScheduledAtKey]).Format("15:04")
		switch status, _ := json.Marshal(c.Object["status"]); {
		case strings.Contains(string(status), `"Failed"`), strings.Contains(string(status), `"succeeded":1`):
			at += "-"
		case strings.Contains(string(status), `"Complete"`), strings.Contains(string(status), `"completionTime"`):
			at += "+"
		}
		all = append(all, at)
	}
	return strings.Join(all, " ")
}

// end writes the status of a finished child, as its own controller would.
func (m *model) end(c *unstructured.Unstructured, well bool) {
	m.Helper()
	start, now := c.GetAnnotations()[v1beta1.AdvancedCronJobScheduledAtKey], m.Clock.UTC().Format(time.RFC3339)
	status := fmt.Sprintf(`{"startTime":%q,"conditions":[{"type":"Complete","status":"True"}]}`, start)
	switch {
	case m.kind == v1beta1.ImageListPullJobTemplate && well:
		status = fmt.Sprintf(`{"startTime":%q,"completionTime":%q,"desired":2,"succeeded":2,"active":0,"completed":2}`,
			start, now)
	case m.kind == v1beta1.ImageListPullJobTemplate:
		status = fmt.Sprintf(`{"startTime":%q,"completionTime":%q,"desired":2,"succeeded":1,"active":0,"completed":2}`,
			start, now)
	case !well:
		status = strings.Replace(status, "Complete", "Failed", 1)
	}
	if err := m.Server.Status().Patch(m.Context(), c,
		client.RawPatch("application/merge-patch+json", []byte(`{"status":`+status+`}`))); err != nil {
		m.Fatal(err)
	}
}

// has compares the children with a picture.
func (m *model) has(why, want string) {
	m.Helper()
	if diff := cmp.Diff(want, m.picture()); diff != "" {
		m.Errorf("at %s: %s (-want +got):\n%s", m.Clock.Format("15:04:05"), why, diff)
	}
}

// last compares the last tick of the status.
func (m *model) last(job *v1beta1.AdvancedCronJob, want string) {
	m.Helper()
	m.look(job)
	got := ""
	if t := job.Status.LastScheduleTime; t != nil {
		got = t.UTC().Format("15:04")
	}
	if got != want {
		m.Errorf("at %s the last tick is %q, want %q", m.Clock.Format("15:04:05"), got, want)
	}
}

// emitted are the events of a reason.
func (m *model) emitted(job *v1beta1.AdvancedCronJob, reason string) []string {
	m.Helper()
	var all []string
	for _, e := range m.Server.Events(job, reason) {
		all = append(all, e.Message)
	}
	return all
}

func policy(p v1beta1.ConcurrencyPolicy) func(*v1beta1.AdvancedCronJob) {
	return func(j *v1beta1.AdvancedCronJob) { j.Spec.ConcurrencyPolicy = p }
}

func paused(is bool) func(*v1beta1.AdvancedCronJob) {
	return func(j *v1beta1.AdvancedCronJob) { j.Spec.Paused = &is }
}

func deadline(seconds int64) func(*v1beta1.AdvancedCronJob) {
	return func(j *v1beta1.AdvancedCronJob) { j.Spec.StartingDeadlineSeconds = &seconds }
}

func history(well, failed int32) func(*v1beta1.AdvancedCronJob) {
	return func(j *v1beta1.AdvancedCronJob) {
		j.Spec.SuccessfulJobsHistoryLimit, j.Spec.FailedJobsHistoryLimit = ptr.To(well), ptr.To(failed)
	}
}
