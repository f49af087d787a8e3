package ephemeraljob

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/controllers/ephemeraljob/ephemeral"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// The finalizer goes first, then pods get the containers, then comes the status. A job is deleted where nothing has
// failed.
func TestPass(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	down := apierrors.NewInternalError(errors.New("down"))
	over := func(j *ephemeralJob) { j.Status.CompletionTime = &metav1.Time{Time: now.Add(-time.Hour * 1000)} }
	cases := map[string]struct {
		change func(*ephemeralJob)
		errs   map[string]error
		want   string
		fails  bool
	}{
		"a job begins": {
			want: "patch finalizers, patch ephemeralcontainers, patch status",
		},
		"what fails does not keep the status from being written": {
			errs:  map[string]error{"patch finalizers": down, "patch ephemeralcontainers": down},
			want:  "patch finalizers, patch ephemeralcontainers, patch status",
			fails: true,
		},
		"a job that is over for long": {
			change: over,
			want:   "patch finalizers, delete version 8",
		},
		"a job stays where its finalizer does": {
			change: over,
			errs:   map[string]error{"patch finalizers": down},
			want:   "patch finalizers",
			fails:  true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{"app": "web"}
			job := &ephemeralJob{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "debug", UID: "uid-debug", ResourceVersion: "7",
				Finalizers: []string{v1alpha1.EphemeralJobFinalizerKey},
			}}
			job.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			job.Spec.Template.EphemeralContainers = make([]corev1.EphemeralContainer, 1)
			if c.change != nil {
				c.change(job)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", Labels: labels}}
			in := ephemeral.Input{Job: job, Pods: []*corev1.Pod{pod}, Now: now}
			p := newPlan(&snapshot{job: job, input: in}, stored.Kind{GVK: gvk()})
			answer := pod.DeepCopy()
			answer.ResourceVersion = "8"
			var sent []string
			for stage := p.all.Next(); len(stage) > 0; stage = p.all.Next() {
				for _, w := range stage {
					sent = append(sent, told(w))
					p.all.Answer(now, w, answer, c.errs[told(w)])
				}
			}
			if got := strings.Join(sent, ", "); got != c.want || (p.all.Err() != nil) != c.fails {
				t.Errorf("sent %s, then %v", got, p.all.Err())
			}
		})
	}
}

func told(w *write.Write) string {
	switch {
	case w.Verb == write.Delete:
		return "delete version " + w.Object.GetResourceVersion()
	case w.Subresource == "":
		return "patch finalizers"
	}
	return "patch " + w.Subresource
}
