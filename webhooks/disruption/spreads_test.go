package disruption_test

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

// departures has the pods whose deletion was recorded.
type departures struct {
	pods  []string
	fault error
}

func (*departures) Ready(context.Context) error { return nil }

func (d *departures) Depart(_ context.Context, pod *corev1.Pod) error {
	d.pods = append(d.pods, pod.Name)
	return d.fault
}

// TestDepartures: an admitted deletion is recorded after the decision of the budget, and a failed record refuses
// nothing.
func TestDepartures(t *testing.T) {
	remove := request{operation: admissionv1.Delete, before: newPod(nil)}
	evict := request{
		operation:   admissionv1.Create,
		subresource: "eviction",
		after:       &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}},
	}
	for name, c := range map[string]struct {
		why     string
		request request
		allowed int32
		open    bool
		fault   error
		refused bool
		records int
	}{
		"admitted": {why: "the deletion opens a place", request: remove, allowed: 1, records: 1},
		"refused":  {why: "the pod stays", request: remove, refused: true},
		"a dry run": {
			why:     "nothing happens",
			request: request{operation: admissionv1.Delete, before: newPod(nil), dryRun: true},
			allowed: 1,
		},
		"an eviction": {why: "it is a deletion", request: evict, allowed: 1, records: 1},
		"a failed record": {
			why:     "the controller observes the deletion later",
			request: remove,
			allowed: 1,
			fault:   errors.New("conflict"),
			records: 1,
		},
		"no budget":         {why: "its path asks none", request: remove, open: true, records: 1},
		"an eviction, open": {why: "its path asks none", request: evict, open: true, records: 1},
		"no pod, open": {
			why:     "nothing can be recorded",
			request: request{operation: admissionv1.Delete, before: map[string]any{"spec": 1}},
			open:    true,
		},
		"an update, open": {
			why:     "no deletion",
			request: request{operation: admissionv1.Update, before: newPod(nil), after: newPod(nil)},
			open:    true,
		},
		"a failed record, open": {
			why: "nothing is refused", request: remove, open: true, fault: errors.New("conflict"), records: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &departures{fault: c.fault}
			w := newWorld(t, c.allowed, nil)
			hook := w.webhook(t, disruption.Options{Spreads: d})
			review := hook.Review
			if c.open {
				review = hook.ReviewOpen
			}
			if a := review(t.Context(), c.request.review(t)); a.Allowed == c.refused || len(d.pods) != c.records {
				t.Errorf("%s: allowed %t, %q are recorded", c.why, a.Allowed, d.pods)
			}
			alone, err := disruption.New(nil, w, disruption.Options{Spreads: d})
			if err != nil {
				t.Fatal(err)
			}
			if a := alone.Review(t.Context(), c.request.review(t)); !a.Allowed {
				t.Errorf("%s: without budgets: %+v", c.why, a.Result)
			}
		})
	}
	if _, err := disruption.New(nil, newWorld(t, 0, nil), disruption.Options{}); err == nil {
		t.Error("a webhook that does nothing")
	}
}
