package broadcastjob

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// planned returns the pass of a job with a node that fits, and with a pod on a node that does not exist any more.
func planned(t *testing.T) *plan {
	t.Helper()
	job := &broadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "scan", UID: "uid-scan"}}
	job.Default()
	gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "old", UID: "uid-old", ResourceVersion: "7",
	}}
	gone.Spec.NodeName = "node-1"
	cordoned := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	cordoned.Spec.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoExecute}}
	fits := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}}
	fits.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9")}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &snapshot{job: job, input: broadcast.Input{
		Job: job, Now: now, Pods: []*corev1.Pod{gone},
		Nodes: []*corev1.Node{cordoned, fits},
	}}
	p, err := newPlan(s, stored.Kind{GVK: gvk()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What follows from each answer: the writes, the events, and when to look again.
func TestPass(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	taken, missing := apierrors.NewAlreadyExists(pods, "p"), apierrors.NewNotFound(pods, "p")
	own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(&broadcastJob{ObjectMeta: metav1.ObjectMeta{UID: "uid-scan"}}, gvk()),
	}}}
	cases := map[string]struct {
		errs   map[write.Verb]error
		found  *corev1.Pod
		want   string
		events string
		fails  string
		soon   bool
	}{
		"all succeeds": {
			want:   "delete old, create pod, patch status active 1",
			events: "SuccessfulDelete SuccessfulCreate",
		},
		"a pod that has changed stays": {
			errs: map[write.Verb]error{write.Delete: apierrors.NewConflict(pods, "old", errors.New("version"))},
			want: "delete old, create pod, patch status active 2", events: "SuccessfulCreate", soon: true,
		},
		"a deletion is refused": {
			errs: map[write.Verb]error{write.Delete: apierrors.NewForbidden(pods, "old", errors.New("no"))},
			want: "delete old, create pod, patch status active 2", events: "FailedDelete SuccessfulCreate",
			fails: "delete pod old",
		},
		"an earlier process has created the pod": {
			errs: map[write.Verb]error{write.Create: taken}, found: own,
			want: "delete old, create pod, get pod, patch status active 0", events: "SuccessfulDelete", soon: true,
		},
		"another owner has the name": {
			errs: map[write.Verb]error{write.Create: taken}, found: &corev1.Pod{},
			want: "delete old, create pod, get pod, patch status active 0", events: "SuccessfulDelete FailedCreate",
			fails: "is not of the job",
		},
		"the predecessor has gone since": {
			errs: map[write.Verb]error{write.Create: taken, write.Get: missing},
			want: "delete old, create pod, get pod, patch status active 0", events: "SuccessfulDelete FailedCreate",
			fails: "its predecessor was still there",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := planned(t)
			pass, sent := p.pass(), []string{}
			for stage := pass.Next(); len(stage) > 0; stage = pass.Next() {
				for ; len(stage) > 0; stage = stage[1:] {
					w := stage[0]
					sent = append(sent, told(t, w))
					var answer write.Object = c.found
					if w.Verb != write.Get {
						answer = w.Object
					}
					stage = append(stage, pass.Answer(p.input.Now, w, answer, c.errs[w.Verb])...)
				}
			}
			var events []string
			for _, n := range p.events {
				events = append(events, n.Code)
			}
			if got := strings.Join(sent, ", "); got != c.want || strings.Join(events, " ") != c.events {
				t.Errorf("sent %s, announced %v", got, events)
			}
			failed := ""
			if err := pass.Err(); err != nil {
				failed = err.Error()
			}
			if (failed != "") != (c.fails != "") || !strings.Contains(failed, c.fails) || (p.after == soon) != c.soon {
				t.Errorf("got %s, and look again after %s", failed, p.after)
			}
		})
	}
}

func told(t *testing.T, w *write.Write) string {
	t.Helper()
	data, err := w.Data()
	if err != nil {
		t.Fatal(err)
	}
	_, active, _ := strings.Cut(string(data), `"active":`)
	switch {
	case w.Verb == write.Delete && w.SameVersion:
		return "delete " + w.Object.GetName()
	case w.Verb == write.Patch && w.Subresource == write.Status:
		return "patch status active " + active[:1]
	}
	return strings.ToLower(string(w.Verb)) + " pod"
}

// The end of a job is written before anything else, and nothing follows where it is not stored.
func TestPassOfTheEnd(t *testing.T) {
	p := planned(t)
	p.decision.StatusFirst, p.decision.Status.Phase = true, v1beta1.PhaseFailed
	pass := p.pass()
	first := pass.Next()
	pass.Answer(p.input.Now, first[0], nil, apierrors.NewInternalError(errors.New("down")))
	if len(first) != 1 || first[0].Subresource != write.Status || len(pass.Next()) > 0 || pass.Err() == nil {
		t.Errorf("%v comes first, then %v", first, pass.Err())
	}
}
