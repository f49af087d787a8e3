package disruption_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

// exempting is a Guard that never refuses the users of Kubernetes.
func exempting(_ *disruption.GuardLookups, o *disruption.GuardOptions) {
	o.Policy.ExemptUsers = pub.SystemUsers()
}

// TestReviewExempt: what the scheduler asks for is admitted and recorded, so that the evictions of other users wait.
func TestReviewExempt(t *testing.T) {
	pods := policyv1beta1.GroupVersion.WithResource("podunavailablebudgets").GroupResource()
	for name, c := range map[string]struct {
		why     string
		allowed int32
		// fault fails the write.
		fault    error
		want     pub.Reason
		writes   int
		recorded bool
	}{
		"room":      {why: "the record is one write", allowed: 2, want: pub.Spent, writes: 1, recorded: true},
		"exhausted": {why: "the budget does not keep a pod on its node", want: pub.UserExempt, writes: 1, recorded: true},
		"forbidden": {
			why:   "a record that fails refuses nothing",
			fault: apierrors.NewForbidden(pods, "a", errors.New("no right")),
			want:  pub.UserExempt,
		},
		"conflicts": {
			why:   "nor do conflicts without end",
			fault: apierrors.NewConflict(pods, "a", errors.New("changed")),
			want:  pub.UserExempt,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCluster(t)
			s.put("a", c.allowed, nil)
			g, x := s.replica(func(l *disruption.GuardLookups, o *disruption.GuardOptions) {
				exempting(l, o)
				if c.fault != nil {
					open := make(chan struct{})
					close(open)
					l.Client = &slow{Client: s, open: open, fault: c.fault}
				}
			})
			s.show(x, "a")
			pod := web("web-000")
			d := disruption.Disruption{Pod: pod, Operation: pub.Delete, User: "system:kube-scheduler"}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			got, err := g.Review(ctx, d)
			if err != nil || !got.Allowed || got.Reason != c.want {
				t.Fatalf("%s: %+v, %v", c.why, got.Verdict, err)
			}
			if writes := s.codes(); len(writes) != c.writes {
				t.Errorf("%s: writes %q", c.why, writes)
			}
			status := s.read("a").Status
			if _, recorded := status.DisruptedPods["web-000"]; recorded != c.recorded || status.UnavailableAllowed < 0 {
				t.Errorf("%s: status %+v", c.why, status)
			}
			if events := s.Events(pod, "PubPreventPodDeletion"); len(events) > 0 {
				t.Errorf("%s: events %q", c.why, events)
			}
		})
	}
	t.Run("others wait", func(t *testing.T) {
		s := newCluster(t)
		s.put("a", 1, nil)
		g, x := s.replica(exempting)
		s.show(x, "a")
		for _, c := range []struct {
			pod, user string
			want      pub.Reason
		}{
			{"web-000", "system:kube-scheduler", pub.Spent},
			{"web-001", "ann", pub.Exhausted},
			{"web-001", "system:kube-scheduler", pub.UserExempt},
			{"web-001", "ann", pub.AlreadyRecorded},
			{"web-002", "ann", pub.Exhausted},
		} {
			got, err := g.Review(t.Context(), disruption.Disruption{Pod: web(c.pod), Operation: pub.Evict, User: c.user})
			if err != nil || got.Reason != c.want {
				t.Errorf("%s asks for %s: %+v, %v, want %s", c.user, c.pod, got.Verdict, err, c.want)
			}
		}
	})
}
