package entries_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/write"
)

// An entry comes with a CA and goes when it is not wanted, entries of others stay, and what is as it should be is not
// written.
func TestEntries(t *testing.T) {
	foreign := wanted("theirs.example.com", "true")
	g := newGround(t)
	g.Pods = named(name, foreign)
	steps := []struct {
		why  string
		want []entry
		have []string
	}{
		{
			"new ones come after those of others",
			[]entry{wanted("mpod.kb.io", "a"), wanted("mpod-open.kb.io", "b")},
			[]string{"theirs.example.com", "mpod.kb.io=a", "mpod-open.kb.io=b"},
		},
		{
			"a condition is brought up to date",
			[]entry{wanted("mpod.kb.io", "c"), wanted("mpod-open.kb.io", "b")},
			[]string{"theirs.example.com", "mpod.kb.io=c", "mpod-open.kb.io=b"},
		},
		{
			"one goes and one comes",
			[]entry{wanted("mpod-0a1b2c3d.kb.io", "d"), wanted("mpod-open.kb.io", "b")},
			[]string{"theirs.example.com", "mpod-open.kb.io=b", "mpod-0a1b2c3d.kb.io=d"},
		},
		{"all go", nil, []string{"theirs.example.com"}},
	}
	for i, s := range steps {
		g.want(s.want...).settle()
		var got []string
		for _, w := range g.Pods.Webhooks {
			if w.Name == foreign.Name {
				got = append(got, w.Name)
				continue
			}
			got = append(got, w.Name+"="+w.MatchConditions[0].Expression)
			if string(w.ClientConfig.CABundle) != "ca" {
				t.Errorf("%s: %s has no CA", s.why, w.Name)
			}
		}
		if diff := cmp.Diff(s.have, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", s.why, diff)
		}
		if g.writes != i+1 {
			t.Errorf("%s: %d writes, want %d", s.why, g.writes, i+1)
		}
	}
	if len(g.announced) > 0 {
		t.Errorf("no other writer did anything, and %v was announced", g.announced)
	}
}

// Whatever another writer does to an entry: what is ours is written again, once, and reported; what is theirs stays.
func TestEdits(t *testing.T) {
	condition := func(name, expression string) admissionregistrationv1.MatchCondition {
		return admissionregistrationv1.MatchCondition{Name: name, Expression: expression}
	}
	theirs := metav1.LabelSelectorRequirement{Key: "their", Operator: metav1.LabelSelectorOpExists}
	cases := map[string]struct {
		why  string
		edit func(*configuration, *entry)
		// stays reports that the edit is theirs to make. Else ours names the part in the announcement.
		stays bool
		ours  string
	}{
		"an expression": {
			why:  "no pod would be sent",
			edit: func(_ *configuration, e *entry) { e.MatchConditions[0].Expression = "false" },
			ours: "mpod.kb.io: match conditions",
		},
		"a condition that is removed": {
			why:  "all pods would be sent",
			edit: func(_ *configuration, e *entry) { e.MatchConditions = nil },
			ours: "mpod.kb.io: match conditions",
		},
		"a second condition of ours": {"it would exclude pods", func(_ *configuration, e *entry) {
			e.MatchConditions = append(e.MatchConditions, condition(scope.NotTaken, "false"))
		}, false, "mpod.kb.io: match conditions"},
		"a condition of theirs": {"they may exclude pods", func(_ *configuration, e *entry) {
			e.MatchConditions = append([]admissionregistrationv1.MatchCondition{condition("theirs", "t")}, e.MatchConditions...)
		}, true, ""},
		"a path": {
			why:  "no step answers there",
			edit: func(_ *configuration, e *entry) { e.ClientConfig.Service.Path = ptr.To("/other") },
			ours: "mpod.kb.io: rules or client configuration",
		},
		"a service": {
			why:  "no step answers there",
			edit: func(_ *configuration, e *entry) { e.ClientConfig.Service.Name = "other" },
			ours: "mpod.kb.io: rules or client configuration",
		},
		"a CA": {
			why:   "another component rotates it",
			edit:  func(_ *configuration, e *entry) { e.ClientConfig.CABundle = []byte("rotated") },
			stays: true,
		},
		"rules": {
			why:  "no pod would be sent",
			edit: func(_ *configuration, e *entry) { e.Rules[0].Operations[0] = admissionregistrationv1.Delete },
			ours: "mpod.kb.io: rules or client configuration",
		},
		"a namespace": {
			why:  "spared pods would be sent",
			edit: func(_ *configuration, e *entry) { e.NamespaceSelector.MatchExpressions = nil },
			ours: "mpod.kb.io: namespace selector",
		},
		"no selector": {
			why:  "spared pods would be sent",
			edit: func(_ *configuration, e *entry) { e.NamespaceSelector = nil },
			ours: "mpod.kb.io: namespace selector",
		},
		"a name": {
			why:  "another entry is wanted",
			edit: func(_ *configuration, e *entry) { e.Name = "theirs.example.com" },
			ours: "mpod.kb.io was removed",
		},
		"a deletion": {
			why: "it comes back", edit: func(c *configuration, _ *entry) { c.Webhooks = nil }, ours: "mpod.kb.io was removed",
		},
		"a reset": {
			why:  "it comes back",
			edit: func(c *configuration, _ *entry) { c.Webhooks, c.Annotations = nil, nil },
			ours: "deleted or reset",
		},
		"policy": {
			why:   "they may choose",
			edit:  func(_ *configuration, e *entry) { e.FailurePolicy = ptr.To(admissionregistrationv1.Ignore) },
			stays: true,
		},
		"timeout": {
			why: "they may choose", edit: func(_ *configuration, e *entry) { e.TimeoutSeconds = ptr.To[int32](2) }, stays: true,
		},
		"more spaces": {"they may spare more", func(_ *configuration, e *entry) {
			e.NamespaceSelector.MatchExpressions = append(e.NamespaceSelector.MatchExpressions, theirs)
		}, true, ""},
		"labels": {"they may spare more", func(_ *configuration, e *entry) {
			e.NamespaceSelector.MatchLabels = map[string]string{"their": "choice"}
		}, true, ""},
		"of pods": {"they may spare more", func(_ *configuration, e *entry) {
			e.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{theirs}}
		}, true, ""},
		"more entries": {
			why:   "they are theirs",
			edit:  func(c *configuration, _ *entry) { c.Webhooks = append(c.Webhooks, wanted("theirs.example.com", "t")) },
			stays: true,
		},
		"our names": {
			why:  "an entry that looks like ours and is not wanted goes",
			edit: func(c *configuration, _ *entry) { c.Webhooks = append(c.Webhooks, wanted("mpod-open.kb.io", "t")) },
			ours: "deleted or reset",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGround(t).want(wanted("mpod.kb.io", "a"))
			g.Pods = named("pods")
			g.settle()
			before := g.Pods.DeepCopy()
			g.Now = g.Now.Add(time.Hour)
			g.edit(func(p *configuration) { c.edit(p, &p.Webhooks[0]) })
			edited := g.Pods.DeepCopy()
			writes := g.writes
			g.settle()
			want, n := before.Webhooks, 1
			if c.stays {
				want, n = edited.Webhooks, 0
			}
			if name == "a name" {
				want = append(edited.Webhooks, before.Webhooks...)
			}
			if diff := cmp.Diff(want, g.Pods.Webhooks); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if g.writes != writes+n || len(g.announced) != n {
				t.Fatalf("%s: %d writes, announced %v", c.why, g.writes-writes, g.announced)
			}
			if n > 0 && (g.announced[0].Code != entries.NoteUndone || !strings.Contains(g.announced[0].Text, c.ours)) {
				t.Errorf("%s: announced %v, want %q", c.why, g.announced, c.ours)
			}
		})
	}
}

// A change of the sets writes our conditions alone, and keeps what others have changed.
func TestKept(t *testing.T) {
	g := newGround(t).want(wanted("mpod.kb.io", "a"))
	g.Pods = named(name)
	g.settle()
	g.edit(func(c *configuration) {
		w := &c.Webhooks[0]
		w.FailurePolicy, w.TimeoutSeconds = ptr.To(admissionregistrationv1.Ignore), ptr.To[int32](2)
		w.NamespaceSelector.MatchLabels = map[string]string{"their": "choice"}
		w.ClientConfig.CABundle = []byte("rotated")
		w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: "theirs", Expression: "t"})
	})
	want := g.Pods.DeepCopy().Webhooks[0]
	want.MatchConditions[0].Expression = "b"
	w := g.want(wanted("mpod.kb.io", "b")).next()
	if diff := cmp.Diff(want, g.Pods.Webhooks[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ops, is := w.Body.(write.Ops); !is || len(ops) != 3 { // the test, the conditions, the record
		t.Errorf("more is written than changed: %v", w.Body)
	}
	if diff := cmp.Diff([]string{entries.NotePolicy}, codes(g.notes)); diff != "" || len(g.announced) > 0 {
		t.Errorf("notes (-want +got):\n%s\nannounced %v", diff, g.announced)
	}
}

// A requirement that an earlier version of this program, or another namespace, has left goes when it is not wanted any
// more. What others have asked for stays beside the rest.
func TestOldRequirement(t *testing.T) {
	own := func(namespace string) entry {
		w := wanted("mpod.kb.io", "a")
		w.NamespaceSelector.MatchExpressions = append(w.NamespaceSelector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{namespace},
		})
		return w
	}
	g := newGround(t).want(own("kruise-system"))
	g.Pods = named(name)
	g.settle()
	theirs := metav1.LabelSelectorRequirement{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"theirs"},
	}
	g.edit(func(c *configuration) {
		s := c.Webhooks[0].NamespaceSelector
		s.MatchExpressions = append(s.MatchExpressions, theirs)
	})
	g.want(own("elsewhere")).settle()
	want := own("elsewhere").NamespaceSelector
	want.MatchExpressions = []metav1.LabelSelectorRequirement{want.MatchExpressions[0], theirs, want.MatchExpressions[1]}
	if diff := cmp.Diff(want, g.Pods.Webhooks[0].NamespaceSelector); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if g.writes != 2 {
		t.Errorf("%d writes", g.writes)
	}
}

// A missing configuration is created with its entries at once, and is not written a second time.
func TestMissing(t *testing.T) {
	g := newGround(t).want(wanted("mpod.kb.io", "a"))
	g.Main.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "n/certificate", "other": "x"}
	if w := g.next(); w == nil || w.Verb != write.Create {
		t.Fatalf("%+v", w)
	}
	if a := g.Pods.Annotations; len(a) != 2 || a["cert-manager.io/inject-ca-from"] == "" {
		t.Errorf("annotations %v: the CA would not be kept", a)
	}
	g.settle()
	if len(g.Pods.Webhooks) != 1 || string(g.Pods.Webhooks[0].ClientConfig.CABundle) != "ca" || g.writes != 1 {
		t.Errorf("%d writes: %+v", g.writes, g.Pods)
	}
	for i, since := range []time.Duration{time.Hour, 600 * time.Millisecond} {
		g.Pods, g.Now = nil, g.Now.Add(since)
		if g.next(); g.Pods == nil || len(g.announced) != i+1 {
			t.Fatalf("a configuration that was deleted %s after the last write is not created at once: announced %v",
				since, g.announced)
		}
		g.next()
	}
}

func TestNothing(t *testing.T) {
	g := newGround(t)
	g.settle()
	g.Pods = named(name)
	g.settle()
	if g.writes > 0 {
		t.Error("nothing is wanted, and something is written")
	}
	g.want(wanted("mpod.kb.io", "a"))
	g.Main = nil
	if g.settle(); g.writes > 0 || len(g.notes) != 1 || g.notes[0].Code != entries.NoteNoAuthority {
		t.Errorf("%d writes without a CA: %v", g.writes, g.notes)
	}
}

// An address has a CA of its own, which is part of what is wanted.
func TestAddress(t *testing.T) {
	w := wanted("mpod.kb.io", "a")
	w.ClientConfig = admissionregistrationv1.WebhookClientConfig{
		URL: ptr.To("https://localhost"), CABundle: []byte("first"),
	}
	g := newGround(t).want(w)
	g.Pods, g.Main, g.policy.Client = named(name), nil, w.ClientConfig
	g.settle()
	w.ClientConfig.CABundle = []byte("second")
	if g.want(w).settle(); string(g.Pods.Webhooks[0].ClientConfig.CABundle) != "second" {
		t.Errorf("the CA is %s", g.Pods.Webhooks[0].ClientConfig.CABundle)
	}
}

// A record that is not ours is as good as none, and so is a lost one: the entries are brought up to date.
func TestRecord(t *testing.T) {
	for _, record := range []string{"", "nonsense", `{"x":"y"}`, `["a"]`, `{"mpod.kb.io":{"base":"x"}}`} {
		g := newGround(t).want(wanted("mpod.kb.io", "a"), wanted("mpod-open.kb.io", "b"))
		g.Pods = named(name)
		g.settle()
		g.edit(func(c *configuration) { c.Annotations = map[string]string{recordKey: record} })
		g.want(wanted("mpod.kb.io", "z")).settle()
		if len(g.Pods.Webhooks) != 1 || g.Pods.Webhooks[0].MatchConditions[0].Expression != "z" || g.writes != 2 {
			t.Errorf("record %q: %d writes, %+v", record, g.writes, g.Pods.Webhooks)
		}
	}
}

// An entry of a former installation is reported with the command that removes it.
func TestCatchAll(t *testing.T) {
	g := newGround(t)
	left := wanted("mpod.kb.io", "a")
	left.MatchConditions = nil
	sets := served("ca")
	sets.Rules = []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"apps.kruise.io"}, APIVersions: []string{"v1beta1"}, Resources: []string{"sidecarsets"},
		},
	}}
	g.Main = named("main", sets, left)
	g.settle()
	if len(g.notes) != 1 || g.notes[0].Code != entries.NoteCatchAll {
		t.Fatalf("notes %v", g.notes)
	}
	for _, part := range []string{
		`patch mutatingwebhookconfiguration main `, `{"op":"test","path":"/webhooks/1/name","value":"mpod.kb.io"}`,
		`{"op":"remove","path":"/webhooks/1"}`,
	} {
		if !strings.Contains(g.notes[0].Text, part) {
			t.Errorf("%q is not in %q", part, g.notes[0].Text)
		}
	}
	g.Main = named("main", sets)
	if g.settle(); len(g.notes) > 0 {
		t.Errorf("notes %v", g.notes)
	}
}

// A catch-all entry that the overlay for a takeover brings is narrowed, and nothing is created or removed.
func TestNarrowed(t *testing.T) {
	shipped := wanted("mpod.kb.io", "")
	shipped.MatchConditions, shipped.ClientConfig.CABundle = nil, []byte("injected")
	g := newGround(t).want(wanted("mpod.kb.io", "a"))
	g.Pods, g.Main = named(name, shipped), nil
	g.settle()
	want := wanted("mpod.kb.io", "a")
	want.ClientConfig.CABundle = []byte("injected")
	if diff := cmp.Diff([]entry{want}, g.Pods.Webhooks); diff != "" || g.writes != 1 {
		t.Errorf("%d writes (-want +got):\n%s", g.writes, diff)
	}
}

// Entries of a former installation for disruptions of all pods are reported with the command that removes them.
func TestCatchAllDisruptions(t *testing.T) {
	rule := func(
		resource string, o ...admissionregistrationv1.OperationType,
	) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{
			Operations: o,
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource},
			},
		}}
	}
	for name, c := range map[string]struct {
		why   string
		rules []admissionregistrationv1.RuleWithOperations
		want  bool
	}{
		"vpod": {
			"it sends updates and deletions of all pods",
			rule("pods", admissionregistrationv1.Update, admissionregistrationv1.Delete), true,
		},
		"vpodeviction": {"it sends all evictions", rule("pods/eviction", admissionregistrationv1.Create), true},
		"anything":     {"it sends what has no name, too", rule("*", admissionregistrationv1.OperationAll), true},
		"mpod":         {"a new pod is not disrupted", rule("pods", admissionregistrationv1.Create), false},
		"vservice":     {"a Service is no pod", rule("services", admissionregistrationv1.Delete), false},
	} {
		left := wanted(name+".kb.io", "")
		left.Rules = c.rules
		pass, err := entries.Next(entries.Observation{Main: named("main", left)}, entries.State{}, entries.Policy{
			Configuration: "pods", Disruptions: true,
		})
		if err != nil || (len(pass.Notes) > 0) != c.want {
			t.Fatalf("%s: %s: notes %v, %v", name, c.why, pass.Notes, err)
		}
		if c.want && !strings.Contains(pass.Notes[0].Text, "kubectl patch validatingwebhookconfiguration main ") {
			t.Errorf("%s: %s", name, pass.Notes[0].Text)
		}
	}
}
