package process

import (
	"slices"
	"testing"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

// TestBudgetGates: the gates of budgets reach the webhook, the entries that have requests sent there, and the policy of
// all that decide by budgets.
func TestBudgetGates(t *testing.T) {
	for list, c := range map[string]struct {
		why                string
		deletes, updates   bool
		resizes, envDaemon bool
	}{
		"": {
			why: "deletions are reviewed by default, updates are not", deletes: true, envDaemon: true,
		},
		"PodUnavailableBudgetUpdateGate=true":  {"updates are reviewed, too", true, true, false, true},
		"PodUnavailableBudgetDeleteGate=false": {"nothing is reviewed", false, false, false, true},
		"PodUnavailableBudgetDeleteGate=false,PodUnavailableBudgetUpdateGate=true": {
			why: "updates alone are reviewed", updates: true, envDaemon: true,
		},
		"PodWebhook=false,PodUnavailableBudgetUpdateGate=true": {
			why: "without the webhook of pods nothing is reviewed", envDaemon: true,
		},
		"InPlacePodVerticalScaling=true": {
			why: "a resize is an operation of its own", deletes: true, resizes: true, envDaemon: true,
		},
		"KruiseDaemon=false": {
			why: "metadata restarts no container", deletes: true,
		},
	} {
		g := gatesOf(t, list)
		w, s, p := admission(g), podScope(options.Options{Gates: g}), budgetPolicy(g, resizing{})
		want := disruption.Options{NoDeletes: !c.deletes, Updates: c.updates}
		if w.Disruption != want || s.NoDeletes == c.deletes || s.Updates != c.updates || p.Resizes != c.resizes ||
			p.Installed.EnvDaemon != c.envDaemon {
			t.Errorf("%q: %s: webhook %+v, scope %+v, policy %+v", list, c.why, w.Disruption, s, p)
		}
		if idle := withoutEffect(g); len(idle) > 0 && !w.NoPods && c.envDaemon {
			t.Errorf("%q: %v have no effect", list, idle)
		}
	}
}

// TestBudgetExemptUsers: the flag reaches the policy that decides and the entries that have requests sent there. Its
// default are the users of Kubernetes.
func TestBudgetExemptUsers(t *testing.T) {
	for name, c := range map[string]struct {
		why  string
		args []string
		want []string
	}{
		"default": {"the scheduler must preempt", nil, pub.SystemUsers()},
		"others": {
			"the list is replaced",
			[]string{"--pub-exempt-users=system:kube-scheduler, system:serviceaccount:ops:drain"},
			[]string{"system:kube-scheduler", "system:serviceaccount:ops:drain"},
		},
		"nobody": {"all users wait, as with OpenKruise", []string{"--pub-exempt-users="}, nil},
	} {
		o := optionsOf(t, c.args...)
		if p, s := guardPolicy(o, resizing{}), podScope(o); !slices.Equal(p.ExemptUsers, c.want) ||
			!slices.Equal(s.ExemptUsers, c.want) {
			t.Errorf("%s: %s: policy %q, scope %q", name, c.why, p.ExemptUsers, s.ExemptUsers)
		}
	}
}
