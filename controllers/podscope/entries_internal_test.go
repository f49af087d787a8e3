package podscope

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/write"
)

// An entry comes with a CA and goes when it is not wanted, entries of others stay, and what is as it should be is not
// written.
func TestEntries(t *testing.T) {
	g := newGround(t)
	g.pods = named(DefaultConfiguration, entry{Name: "theirs.example.com"})
	for i, s := range []struct{ why, closed, open, have string }{
		{"new ones come after those of others", "a", "b", "theirs.example.com mpod.kb.io=a mpod-open.kb.io=b"},
		{"a condition is brought up to date", "c", "b", "theirs.example.com mpod.kb.io=c mpod-open.kb.io=b"},
		{"one goes", "", "b", "theirs.example.com mpod-open.kb.io=b"},
		{"one comes", "d", "b", "theirs.example.com mpod-open.kb.io=b mpod.kb.io=d"},
		{"all go", "", "", "theirs.example.com"},
	} {
		g.want(s.closed, s.open).settle()
		var got []string
		for _, w := range g.pods.Webhooks {
			name := w.Name
			if len(w.MatchConditions) > 0 {
				name += "=" + w.MatchConditions[0].Expression
				if string(w.ClientConfig.CABundle) != "ca" {
					t.Errorf("%s: %s has no CA", s.why, w.Name)
				}
			}
			got = append(got, name)
		}
		if diff := cmp.Diff(s.have, strings.Join(got, " ")); diff != "" || g.writes != i+1 {
			t.Fatalf("%s: %d writes (-want +got):\n%s", s.why, g.writes, diff)
		}
	}
	if len(g.announced) > 0 {
		t.Errorf("no other writer did anything, and %v was announced", g.announced)
	}
}

// Whatever another writer does to an entry: what is ours is written again, once, and reported; what is theirs stays,
// also through a change of what is wanted.
func TestEdits(t *testing.T) {
	theirs := metav1.LabelSelectorRequirement{Key: "their", Operator: metav1.LabelSelectorOpExists}
	spared := metav1.LabelSelectorRequirement{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"theirs"},
	}
	for name, c := range map[string]struct {
		edit func(*configuration, *entry)
		// stays reports that the edit is theirs to make.
		stays bool
	}{
		"an expression": {func(_ *configuration, e *entry) {
			e.MatchConditions[0].Expression = "false"
		}, false},
		"a condition that is removed": {func(_ *configuration, e *entry) { e.MatchConditions = nil }, false},
		"a second condition of ours": {func(_ *configuration, e *entry) {
			e.MatchConditions = append(e.MatchConditions, condition(scope.NotTaken, "false"))
		}, false},
		"a condition of theirs": {func(_ *configuration, e *entry) {
			e.MatchConditions = append([]admissionregistrationv1.MatchCondition{condition("theirs", "t")}, e.MatchConditions...)
		}, false},
		"a path":    {func(_ *configuration, e *entry) { e.ClientConfig.Service.Path = ptr.To("/other") }, false},
		"a service": {func(_ *configuration, e *entry) { e.ClientConfig.Service.Name = "other" }, false},
		"a CA":      {func(_ *configuration, e *entry) { e.ClientConfig.CABundle = []byte("rotated") }, true},
		"no CA":     {func(_ *configuration, e *entry) { e.ClientConfig.CABundle = nil }, false},
		"rules": {
			func(_ *configuration, e *entry) { e.Rules[0].Operations[0] = admissionregistrationv1.Delete }, false,
		},
		"no requirement": {func(_ *configuration, e *entry) { e.NamespaceSelector.MatchExpressions = nil }, false},
		"no selector":    {func(_ *configuration, e *entry) { e.NamespaceSelector = nil }, false},
		"a stale namespace": {func(_ *configuration, e *entry) {
			e.NamespaceSelector.MatchExpressions[1].Values = []string{"elsewhere", "kube-system"}
		}, false},
		"a deletion": {func(c *configuration, _ *entry) { c.Webhooks = nil }, false},
		"our name": {func(c *configuration, e *entry) {
			other := e.DeepCopy()
			other.Name = "mpod-0a1b2c3d.kb.io"
			c.Webhooks = append(c.Webhooks, *other)
		}, false},
		"policy":  {func(_ *configuration, e *entry) { e.FailurePolicy = ptr.To(admissionregistrationv1.Ignore) }, true},
		"timeout": {func(_ *configuration, e *entry) { e.TimeoutSeconds = ptr.To[int32](2) }, true},
		"labels":  {func(_ *configuration, e *entry) { e.NamespaceSelector.MatchLabels = map[string]string{"a": "b"} }, true},
		"more spaces": {func(_ *configuration, e *entry) {
			e.NamespaceSelector.MatchExpressions = append(e.NamespaceSelector.MatchExpressions, theirs, spared)
		}, true},
		"of pods": {func(_ *configuration, e *entry) {
			e.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{theirs}}
		}, true},
		"more entries": {func(c *configuration, _ *entry) {
			c.Webhooks = append(c.Webhooks, entry{Name: "their.example.com"})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t).want("a", "").settle()
			want := g.pods.DeepCopy().Webhooks
			g.now = g.now.Add(time.Hour)
			g.edit(func(p *configuration) { c.edit(p, &p.Webhooks[0]) })
			n := 1
			if c.stays {
				want, n = g.pods.DeepCopy().Webhooks, 0
			}
			writes := g.writes
			g.settle()
			if diff := cmp.Diff(want, g.pods.Webhooks); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if g.writes != writes+n || len(g.announced) != n || n > 0 && g.announced[0].Code != noteUndone {
				t.Errorf("%d writes, announced %v", g.writes-writes, g.announced)
			}
			g.want("b", "").settle()
			if at := len(want[0].MatchConditions) - 1; c.stays && want[0].MatchConditions[at].Name == scope.Selected {
				want[0].MatchConditions[at].Expression = "b"
				if diff := cmp.Diff(len(want), len(g.pods.Webhooks)); diff != "" ||
					!cmp.Equal(want[0].FailurePolicy, g.pods.Webhooks[0].FailurePolicy) ||
					!cmp.Equal(want[0].NamespaceSelector, g.pods.Webhooks[0].NamespaceSelector) {
					t.Errorf("after a change: %+v", g.pods.Webhooks)
				}
			}
		})
	}
}

// A missing configuration is created with its entries at once, and with the annotations by which cert-manager keeps the
// CA.
func TestMissing(t *testing.T) {
	g := newGround(t).want("a", "")
	g.pods, g.main.Annotations = nil, map[string]string{"cert-manager.io/inject-ca-from": "n/certificate", "other": "x"}
	if w := g.next(); w == nil || w.Verb != write.Create {
		t.Fatalf("%+v", w)
	}
	if a := g.pods.Annotations; len(a) != 1 || a["cert-manager.io/inject-ca-from"] == "" {
		t.Errorf("annotations %v: the CA would not be kept", a)
	}
	g.settle()
	if len(g.pods.Webhooks) != 1 || string(g.pods.Webhooks[0].ClientConfig.CABundle) != "ca" || g.writes != 1 {
		t.Errorf("%d writes: %+v", g.writes, g.pods)
	}
	for i, since := range []time.Duration{time.Hour, 1100 * time.Millisecond} {
		g.pods, g.now = nil, g.now.Add(since)
		if g.next(); g.pods == nil || len(g.announced) != i+1 {
			t.Fatalf("a configuration that was deleted %s after the last write is not created at once: announced %v",
				since, g.announced)
		}
		g.next()
	}
}

// Nothing is written where nothing is wanted, or without a CA. An address has a CA of its own.
func TestAuthority(t *testing.T) {
	g := newGround(t)
	g.pods = nil
	if g.settle(); g.writes > 0 {
		t.Error("nothing is wanted, and something is written")
	}
	g.want("a", "").main = nil
	if g.next(); g.writes > 0 || len(g.notes) != 1 || g.notes[0].Code != noteNoAuthority {
		t.Errorf("%d writes without a CA: %v", g.writes, g.notes)
	}
	for _, ca := range []string{"first", "second"} {
		g.planner.options.URL, g.planner.options.CABundle = "https://localhost", []byte(ca)
		if g.settle(); string(g.pods.Webhooks[0].ClientConfig.CABundle) != ca {
			t.Errorf("the CA is %s", g.pods.Webhooks[0].ClientConfig.CABundle)
		}
	}
}

// A catch-all entry that the overlay for a takeover brings is narrowed, and removed where the webhook is off.
func TestTakeover(t *testing.T) {
	g := newGround(t).want("a", "")
	shipped := served("")
	shipped.Name = "mpod.kb.io"
	g.pods = named(DefaultConfiguration, shipped)
	g.settle()
	got := g.pods.Webhooks
	if len(got) != 1 || len(got[0].MatchConditions) != 1 || string(got[0].ClientConfig.CABundle) != "ca" || g.writes != 1 {
		t.Errorf("%d writes: %+v", g.writes, got)
	}
	g.planner.options.Off = true
	if g.settle(); len(g.pods.Webhooks) > 0 {
		t.Errorf("%+v", g.pods.Webhooks)
	}
}

// An edited policy stays and is reported.
func TestPolicy(t *testing.T) {
	g := newGround(t).want("a", "").settle()
	g.edit(func(c *configuration) { c.Webhooks[0].FailurePolicy = ptr.To(admissionregistrationv1.Ignore) })
	g.settle()
	if len(g.notes) != 1 || g.notes[0].Code != notePolicy || g.writes != 1 {
		t.Errorf("%d writes, notes %v", g.writes, g.notes)
	}
}

// An entry of a former installation is reported with the command that removes it.
func TestCatchAll(t *testing.T) {
	for name, kinds := range map[string][2]bool{
		"mpod": {true, false}, "vpod": {false, true}, "vpodeviction": {false, true}, "mcloneset": {false, false},
	} {
		for i, want := range kinds {
			left := served("ca")
			left.Name = name + ".kb.io"
			g := newGround(t)
			g.planner.disruptions, g.main = i == 1, named("main", served("ca"), left)
			notes := g.pass().notes
			if (len(notes) > 0) != want {
				t.Errorf("%s: notes %v", name, notes)
			}
			if want && !strings.Contains(notes[0].Text, `{"op":"remove","path":"/webhooks/1"}`) {
				t.Errorf("%s: %s", name, notes[0].Text)
			}
		}
	}
}
