package advancedcronjob

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/schedule"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
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
	return newPlan(s, stored.Kind{GVK: job.GroupVersionKind()}, stored.Kind{GVK: kind.gvk})
}

// What a child replaces is deleted before it, the status follows, and finished children go last.
func TestPass(t *testing.T) {
	taken := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "jobs"}, "x")
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, "x")
	down := apierrors.NewInternalError(errors.New("down"))
	own := stored.Untyped(batchv1.SchemeGroupVersion.WithKind("Job"))
	own.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(&metav1.ObjectMeta{UID: "uid-web"}, v1beta1.GroupVersion.WithKind("AdvancedCronJob")),
	})
	cases := map[string]struct {
		errs     map[string]error
		found    *unstructured.Unstructured
		want     string
		recorded bool
		fails    string
	}{
		"all succeeds": {
			want: "Delete active, Create, Patch status, Delete old", recorded: true,
		},
		"what is replaced is not deleted": {
			errs: map[string]error{"Delete active": down}, want: "Delete active, Patch status, Delete old",
			fails: "delete Job active",
		},
		"the creation is refused": {
			errs: map[string]error{"Create": down}, want: "Delete active, Create, Patch status, Delete old",
			fails: "create Job web",
		},
		"the answer to an earlier creation was lost": {
			errs: map[string]error{"Create": taken}, found: own,
			want: "Delete active, Create, Get, Patch status, Delete old", recorded: true,
		},
		"the child was deleted meanwhile": {
			errs: map[string]error{"Create": taken, "Get": missing},
			want: "Delete active, Create, Get, Patch status, Delete old", fails: "deleted meanwhile",
		},
		"another owner has the name": {
			errs: map[string]error{"Create": taken}, found: stored.Untyped(own.GroupVersionKind()),
			want: "Delete active, Create, Get, Patch status, Delete old", fails: "the name is taken",
		},
		"the tick is not recorded": {
			errs: map[string]error{"Patch status": down}, want: "Delete active, Create, Patch status", recorded: true,
			fails: "write status",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := due(t)
			pass, sent := p.pass(), []string{}
			for stage := pass.Next(); len(stage) > 0; stage = pass.Next() {
				for ; len(stage) > 0; stage = stage[1:] {
					w, answer := stage[0], own
					what := strings.TrimSpace(string(w.Verb) + " " + w.Subresource)
					switch w.Verb {
					case write.Delete:
						what += " " + w.Object.GetName()
					case write.Get:
						answer = c.found
					case write.Create, write.Patch, write.Ask:
					}
					sent = append(sent, what)
					stage = append(stage, pass.Answer(p.now, w, answer, c.errs[what])...)
				}
			}
			failed := ""
			if err := pass.Err(); err != nil {
				failed = err.Error()
			}
			if got := strings.Join(sent, ", "); got != c.want {
				t.Errorf("sent %s", got)
			}
			if (failed != "") != (c.fails != "") || !strings.Contains(failed, c.fails) {
				t.Errorf("got %q", failed)
			}
			if (len(p.created) == 1 && p.last.Equal(p.tick)) != c.recorded {
				t.Errorf("%d children, the last tick is %s", len(p.created), p.last)
			}
		})
	}
}
