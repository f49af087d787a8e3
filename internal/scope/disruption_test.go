package scope_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kruisekit/kruisekit/internal/scope"
)

func both() scope.Operations { return scope.Operations{Deletes: true, Updates: true} }

func disruptions(t *testing.T, o scope.Operations, guarded, spread []string) scope.Scope {
	t.Helper()
	in := input().Input
	in.Contributions = []scope.Contribution{{Closed: guarded}, {Open: spread}}
	return scope.Disruptions(in, o)
}

// Which entries namespaces with budgets and WorkloadSpreads ask for.
func TestDisruptions(t *testing.T) {
	shop := []string{"shop"}
	exempt := both()
	exempt.Exempt = []string{"system:kube-scheduler", "it's"}
	for name, c := range map[string]struct {
		why             string
		o               scope.Operations
		guarded, spread []string
		names           []string
	}{
		"none":    {why: "nothing is sent for no object", o: exempt},
		"off":     {why: "nothing is sent for no operation", guarded: shop},
		"budgets": {"all kinds of requests", both(), shop, nil, []string{"vpod", "vpod-unstamped", "vpodeviction"}},
		"deletes": {
			why: "updates are not sent", o: scope.Operations{Deletes: true}, guarded: shop,
			names: []string{"vpod", "vpod-unstamped", "vpodeviction"},
		},
		"updates": {"evictions are not sent", scope.Operations{Updates: true}, shop, nil, []string{"vpod", "vpod-unstamped"}},
		"spreads": {"they count deletions", both(), nil, shop, []string{"vpod-open", "vpodeviction-open"}},
		"both": {
			"what budgets concern is recorded by their review", exempt, []string{"a", "shop"}, []string{"b", "shop"}, []string{
				"vpod", "vpod-unstamped", "vpodeviction", "vpod-exempt", "vpodeviction-exempt",
				"vpod-open", "vpod-unready", "vpodeviction-open",
			},
		},
		"spreads without budgets": {
			"budgets concern no deletion", scope.Operations{}, shop, shop, []string{"vpod-open", "vpodeviction-open"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := disruptions(t, c.o, c.guarded, c.spread)
			if len(s.Entries) != len(c.names) {
				t.Errorf("%s: %d entries, want %q", c.why, len(s.Entries), c.names)
			}
			for i, e := range s.Entries {
				closed := e.Name == "vpod.kb.io" || e.Name == "vpodeviction.kb.io"
				if e.Name != c.names[i]+".kb.io" || (*e.FailurePolicy == admissionregistrationv1.Fail) != closed {
					t.Errorf("%s: entry %s is %s, want %s", c.why, e.Name, *e.FailurePolicy, c.names[i])
				}
			}
			if name == "both" || name == "deletes" {
				golden(t, "disruptions-"+name, s)
			}
		})
	}
}
