package advancedcronjob

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/schedule"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// due returns the pass of an object with a tick that is due, an active child that the next one replaces, and a finished
// child that is beyond the limit.
func due(t *testing.T) *plan {
	t.Helper()
	now := time.Date(2030, 1, 1, 0, 0, 30, 0, time.UTC)
	job := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
	job.CreationTimestamp.Time = now.Add(-time.Minute)
	job.Spec.Schedule, job.Spec.ConcurrencyPolicy = "* * * * *", v1beta1.ReplaceConcurrent
	job.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{}
	job.Default()
	*job.Spec.SuccessfulJobsHistoryLimit = 0
	job.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("AdvancedCronJob"))
	parsed, err := schedule.Parse(job.Spec.Schedule, schedule.In{Local: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string, in state) child {
		raw := stored.Untyped(batchv1.SchemeGroupVersion.WithKind("Job"))
		raw.SetName(name)
		return child{Unstructured: raw, state: in}
	}
	kind := kindOf(&job.Spec.Template)
	s := &snapshot{
		job: job, raw: &unstructured.Unstructured{Object: map[string]any{}}, kind: kind, schedule: parsed, now: now,
		children: []child{of("old", succeeded), of("active", active)},
	}
	return newPlan(s)
}

// What a child replaces is deleted before it, and finished children beyond the limit are deleted.
func TestPlan(t *testing.T) {
	p := due(t)
	if len(p.replace) != 1 || p.replace[0].GetName() != "active" || len(p.trim) != 1 || p.trim[0].GetName() != "old" ||
		p.create == nil {
		t.Errorf("replaces %v, trims %v, creates %v", p.replace, p.trim, p.create)
	}
	if status := p.status(); len(status.Active) != 1 || status.LastScheduleTime != nil {
		t.Errorf("before the answers the status is %+v", status)
	}
	if err := p.answerCreate(nil, false, errors.New("refused")); err == nil || p.failure == nil || !p.Last.IsZero() {
		t.Errorf("after a refusal: %v, the last tick is %s", err, p.Last)
	}
	if err := p.answerCreate(nil, true, nil); err == nil || !p.Last.IsZero() {
		t.Errorf("with an object of the name that is gone: %v, the last tick is %s", err, p.Last)
	}
	if err := p.answerCreate(p.create, true, nil); err != nil || !p.Last.Equal(p.Tick) || p.isNew {
		t.Errorf("with a child that existed: %v, the last tick is %s", err, p.Last)
	}
}
