package disruption_test

import (
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

// TestExempt: what the users of Kubernetes ask for is admitted and recorded at both paths; at the path that refuses
// nothing, no other user takes from a budget.
func TestExempt(t *testing.T) {
	remove := request{operation: admissionv1.Delete, before: newPod(nil)}
	evict := request{
		operation:   admissionv1.Create,
		subresource: "eviction",
		after:       &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}},
	}
	image := newPod(nil)
	image.Spec.Containers[0].Image = "web:2"
	update := request{operation: admissionv1.Update, before: newPod(nil), after: image}
	dryRun := remove
	dryRun.dryRun = true
	for name, c := range map[string]struct {
		why     string
		request request
		user    string
		open    bool
		options disruption.Options
		fault   error
		refused bool
		writes  int
	}{
		"preemption": {
			why: "a budget without room does not keep a pod", request: remove, user: "system:kube-scheduler", writes: 1,
		},
		"preemption, open": {
			why: "the record takes from the budget", request: remove, user: "system:kube-scheduler", open: true, writes: 1,
		},
		"preemption, open, a fault": {
			why:     "the record refuses nothing",
			request: remove,
			user:    "system:kube-scheduler",
			open:    true,
			fault:   errors.New("connection reset"),
		},
		"preemption, open, dry run": {why: "nothing happens", request: dryRun, user: "system:kube-scheduler", open: true},
		"preemption, open, gate off": {
			why:     "deletions take nothing",
			request: remove,
			user:    "system:kube-scheduler",
			open:    true,
			options: disruption.Options{NoDeletes: true},
		},
		"eviction, open": {
			why: "it is a deletion", request: evict, user: "system:kube-scheduler", open: true, writes: 1,
		},
		"eviction, open, gate off": {
			why:     "evictions take nothing",
			request: evict,
			user:    "system:kube-scheduler",
			open:    true,
			options: disruption.Options{NoDeletes: true},
		},
		"update, open": {
			why:     "an update takes, too",
			request: update,
			user:    "system:kube-scheduler",
			open:    true,
			options: disruption.Options{Updates: true},
			writes:  1,
		},
		"update, open, gate off": {
			why: "updates take nothing", request: update, user: "system:kube-scheduler", open: true,
		},
		"another user": {why: "others wait for room", request: remove, user: "ann", refused: true},
		"another user, open": {
			why: "only a WorkloadSpread concerns the request", request: remove, user: "ann", open: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, spreads := newWorld(t, 0, nil), &departures{}
			w.exempt, w.writing = pub.SystemUsers(), c.fault
			c.options.Spreads = spreads
			hook := w.webhook(t, c.options)
			review, req := hook.Review, c.request.review(t)
			if req.UserInfo.Username = c.user; c.open {
				review = hook.ReviewOpen
			}
			if a := review(t.Context(), req); a.Allowed == c.refused {
				t.Errorf("%s: %+v", c.why, a.Result)
			}
			if writes := len(w.Requests()); writes != c.writes {
				t.Errorf("%s: %d writes", c.why, writes)
			}
			left := !c.refused && !c.request.dryRun && c.request.operation != admissionv1.Update
			if (len(spreads.pods) > 0) != left {
				t.Errorf("%s: %q are recorded in WorkloadSpreads", c.why, spreads.pods)
			}
		})
	}
}
