package scope_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

var update = flag.Bool("update", false, "write the golden files")

// What the entries look like, as a reviewer would want to see them.
func TestGolden(t *testing.T) {
	everything := input(
		newSet(t, "log", `selector: {matchLabels: {app: web}}`),
		newSet(t, "mesh", `selector: {matchLabels: {app: api}}`),
		newSet(t, "shop",
			`{selector: {matchExpressions: [{key: app, operator: Exists}, {key: canary, operator: NotIn, values: ["yes", "true"]}]}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}`),
		newSet(t, "prod",
			`{selector: {matchLabels: {tier: front}}, namespaceSelector: {matchLabels: {env: prod}, matchExpressions: [{key: team, operator: DoesNotExist}]}}`),
		open(newSet(t, "nice", `selector: {matchLabels: {app: batch}}`)),
		newSet(t, "paused", `{selector: {matchLabels: {app: never}}, injectionStrategy: {paused: true}}`),
	)
	everything.Owned, everything.Launch = true, true
	forAll := input()
	forAll.All, forAll.Launch = true, true
	owned := input()
	owned.Owned, owned.Launch = true, true
	for name, in := range map[string]world{
		"everything": everything, "gate-for-all": forAll, "no-sets": owned, "nothing": input(),
	} {
		t.Run(name, func(t *testing.T) {
			s := compute(t, in)
			got, err := yaml.Marshal(s.Entries)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if len(s.Notes) > 0 {
				t.Errorf("notes: %v", s.Notes)
			}
		})
	}
}

// What one condition says of several sets.
func TestConditions(t *testing.T) {
	const labels = "[has(object.metadata.labels) ? object.metadata.labels : {}].exists(l, "
	cases := map[string]struct {
		why  string
		sets []*appsv1beta1.SidecarSet
		want string
	}{
		"no set": {"nothing is sent", nil, ""},
		"nothing wanted": {
			"an empty selector selects nothing",
			[]*appsv1beta1.SidecarSet{newSet(t, "a", `selector: {}`), newSet(t, "b", `{}`)},
			"",
		},
		"values of a key": {"they become one list", []*appsv1beta1.SidecarSet{
			newSet(t, "a", `selector: {matchLabels: {app: b}}`),
			newSet(t, "b", `selector: {matchExpressions: [{key: app, operator: In, values: [c, a]}]}`),
		}, labels + "('app' in l && l['app'] in ['a','b','c']))"},
		"under the same": {
			"what is the same is said once",
			[]*appsv1beta1.SidecarSet{
				newSet(t, "a", `selector: {matchLabels: {app: a, tier: x}}`),
				newSet(t, "b", `selector: {matchLabels: {app: b, tier: x}}`),
				newSet(t, "c", `selector: {matchLabels: {app: c, tier: z}}`),
			},
			labels + "('app' in l && l['app'] in ['a','b'] && 'tier' in l && l['tier'] == 'x') || ('app' in l && l['app'] == " +
				"'c' && 'tier' in l && l['tier'] == 'z'))",
		},
		"under this and that": {
			"what has become part of another takes nothing in",
			[]*appsv1beta1.SidecarSet{
				newSet(t, "a", `selector: {matchLabels: {app: a, tier: x}}`),
				newSet(t, "b", `selector: {matchLabels: {app: b, tier: x}}`),
				newSet(t, "c", `selector: {matchLabels: {app: b, tier: z}}`),
			},
			labels + "('app' in l && l['app'] in ['a','b'] && 'tier' in l && l['tier'] == 'x') || ('app' in l && l['app'] == " +
				"'b' && 'tier' in l && l['tier'] == 'z'))",
		},
		"names of namespaces": {"they are known to conditions", []*appsv1beta1.SidecarSet{
			newSet(t, "a",
				`{selector: {matchLabels: {app: a}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: one}}}`),
			newSet(t, "b",
				`{selector: {matchLabels: {app: a}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: two}}}`),
		}, labels + "((request.namespace in ['one','two']) && 'app' in l && l['app'] == 'a'))"},
		"pods labelled as namespaces are": {"the label of a pod is no name of a namespace", []*appsv1beta1.SidecarSet{
			newSet(t, "a", `selector: {matchLabels: {kubernetes.io/metadata.name: x}}`),
			newSet(t, "b", `selector: {matchLabels: {kubernetes.io/metadata.name: z}}`),
		}, labels + "('kubernetes.io/metadata.name' in l && l['kubernetes.io/metadata.name'] in ['x','z']))"},
		"in namespaces, pods labelled as they are": {
			"the two differ",
			[]*appsv1beta1.SidecarSet{
				newSet(t, "a",
					`{selector: {matchLabels: {kubernetes.io/metadata.name: x}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: one}}}`),
				newSet(t, "b",
					`{selector: {matchLabels: {kubernetes.io/metadata.name: x}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: two}}}`),
			},
			labels + "((request.namespace in ['one','two']) && 'kubernetes.io/metadata.name' in l && " +
				"l['kubernetes.io/metadata.name'] == 'x'))",
		},
		"contradictions": {"they select nothing", []*appsv1beta1.SidecarSet{
			newSet(t, "a", `selector: {matchLabels: {app: a}, matchExpressions: [{key: app, operator: NotIn, values: [a]}]}`),
			newSet(t, "b", `selector: {matchExpressions: [{key: app, operator: Exists}, {key: app, operator: DoesNotExist}]}`),
			newSet(t, "c",
				`{selector: {matchLabels: {app: a}}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: DoesNotExist}]}}`),
		}, ""},
		"not in": {"a pod without the label is meant, too", []*appsv1beta1.SidecarSet{
			newSet(t, "a", `selector: {matchExpressions: [{key: app, operator: NotIn, values: [a]}]}`),
		}, labels + "(!('app' in l && l['app'] == 'a')))"},
		"there, but not in": {"without the label it is not", []*appsv1beta1.SidecarSet{
			newSet(t, "a",
				`selector: {matchExpressions: [{key: app, operator: NotIn, values: [a]}, {key: app, operator: Exists}]}`),
		}, labels + "('app' in l && !(l['app'] == 'a')))"},
		"in part": {"what can be read bounds it", []*appsv1beta1.SidecarSet{
			newSet(t, "a", `selector: {matchLabels: {app: a}, matchExpressions: [{key: x, operator: Near}]}`),
		}, labels + "('app' in l && l['app'] == 'a'))"},
		"not at all": {
			"it would be about every pod",
			[]*appsv1beta1.SidecarSet{newSet(t, "a", `selector: {matchExpressions: [{key: x, operator: Near}]}`)},
			"",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if s := compute(t, input(c.sets...)); len(s.Entries) > 0 {
				got = s.Entries[0].MatchConditions[0].Expression
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	many := func(n int, spec string) []*appsv1beta1.SidecarSet {
		sets := make([]*appsv1beta1.SidecarSet, n)
		for i := range sets {
			sets[i] = newSet(t, fmt.Sprintf("s%05d", i), fmt.Sprintf(spec, i))
		}
		return sets
	}
	cases := map[string]struct {
		why  string
		sets []*appsv1beta1.SidecarSet
		want []string
		// longest condition, and number of entries.
		longest, entries int
	}{
		"a thousand of one key": {"one list", many(1000, `selector: {matchLabels: {app: app-%d}}`), nil, 12000, 1},
		"a thousand of one key and another": {
			"one list", many(1000, `selector: {matchLabels: {app: web, zone: zone-%d}}`), nil, 14000, 1,
		},
		"a thousand keys": {
			why:     "one list of keys with values",
			sets:    many(1000, `selector: {matchLabels: {key-%d: x}}`),
			longest: 13000,
			entries: 1,
		},
		"tenants": {
			why: "one list of names, keys and values",
			sets: many(1000,
				`{selector: {matchLabels: {app: app-%[1]d}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: tenant-%[1]d}}}`),
			longest: 30000,
			entries: 1,
		},
		"a thousand of two keys": {
			why:     "one list of pairs of values",
			sets:    many(1000, `selector: {matchLabels: {app: app-%[1]d, zone: zone-%[1]d}}`),
			longest: 24000,
			entries: 1,
		},
		"three thousand of two keys": {
			why:     "lists that are too long for one entry continue in the next",
			sets:    many(3000, `selector: {matchLabels: {app: app-%[1]d, zone: zone-%[1]d}}`),
			longest: 48 << 10,
			entries: 2,
		},
		"tenants of two keys": {
			why: "the list has names of namespaces, too",
			sets: many(1000,
				`{selector: {matchLabels: {app: app-%[1]d, zone: zone-%[1]d}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: tenant-%[1]d}}}`),
			longest: 36000,
			entries: 1,
		},
		"eight hundred of different keys": {
			why:     "clauses that are too many for one entry continue in the next",
			sets:    many(800, `selector: {matchLabels: {"app-%[1]d": a, "zone-%[1]d": z}}`),
			longest: 48 << 10,
			entries: 13,
		},
		"far too many of different keys": {
			why:     "pods that have one of the two are sent",
			sets:    many(1200, `selector: {matchLabels: {"app-%[1]d": a, "zone-%[1]d": z}}`),
			want:    []string{scope.NoteWidened},
			longest: 48 << 10,
			entries: 1,
		},
		"fifty of two keys": {
			why:     "it can be said exactly",
			sets:    many(50, `selector: {matchLabels: {app: app-%[1]d, zone: zone-%[1]d}}`),
			longest: 5000,
			entries: 1,
		},
		"six thousand of one key": {
			"the list continues in another entry", many(6000, `selector: {matchLabels: {app: app-%d}}`), nil, 48 << 10, 2,
		},
		"five thousand keys": {
			"the list continues in another entry", many(5000, `selector: {matchLabels: {key-%d: x}}`), nil, 48 << 10, 2,
		},
		"far too many of one key": {
			why: "pods with the label are sent",
			sets: many(1,
				"selector: {matchExpressions: [{key: app, operator: In, values: [n-%d"+letters(80000, ",name-")+"]}]}"),
			want:    []string{scope.NoteWidened},
			longest: 100,
			entries: 1,
		},
		"many kinds of namespaces": {
			why:     "each has an entry",
			sets:    many(20, `{selector: {matchLabels: {app: a}}, namespaceSelector: {matchLabels: {env: e%d}}}`),
			longest: 200,
			entries: 20,
		},
		"too many kinds of namespaces": {
			why:     "those that are too many are about all namespaces",
			sets:    many(40, `{selector: {matchLabels: {app: a}}, namespaceSelector: {matchLabels: {env: e%d}}}`),
			want:    []string{scope.NoteWidened},
			longest: 200,
			entries: 25,
		},
		"unreadable": {
			"it is reported, be it bounded or left out", []*appsv1beta1.SidecarSet{
				newSet(t, "a", `selector: {matchLabels: {app: "not a value!"}}`),
				newSet(t, "b", `selector: {matchLabels: {app: a, "not a key!": ""}}`),
				newSet(t, "c",
					`{selector: {matchLabels: {app: "not a value!"}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: one}}}`),
			}, []string{scope.NoteUnreadable, scope.NoteUnreadable, scope.NoteUnreadable}, 200, 1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := compute(t, input(c.sets...))
			var codes []string
			for _, n := range s.Notes {
				codes = append(codes, n.Code)
			}
			if diff := cmp.Diff(c.want, codes); diff != "" {
				t.Errorf("%s: notes (-want +got):\n%s", c.why, diff)
			}
			if len(s.Entries) != c.entries {
				t.Errorf("%s: %d entries, want %d", c.why, len(s.Entries), c.entries)
			}
			for _, e := range s.Entries {
				if n := len(e.MatchConditions[0].Expression); n > c.longest {
					t.Errorf("%s: a condition of %d letters, want at most %d", c.why, n, c.longest)
				}
			}
		})
	}
}

// letters repeats a text with a number behind it.
func letters(n int, text string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d", text, i)
	}
	return b.String()
}

// Whatever the sets, the entries fit into one object of etcd, and a new pod meets few of them.
func TestSize(t *testing.T) {
	values := func(key string, n int) *metav1.LabelSelector {
		e := metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: strings.Split("value"+letters(n, ",value-"), ","),
		}
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}}
	}
	set := func(pods, namespaces *metav1.LabelSelector) *appsv1beta1.SidecarSet {
		s := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}
		s.Spec.Selector, s.Spec.NamespaceSelector = pods, namespaces
		return s
	}
	var sets []*appsv1beta1.SidecarSet
	for i := range 30 {
		space := &metav1.LabelSelector{MatchLabels: map[string]string{"env": fmt.Sprintf("e%d", i)}}
		sets = append(sets, set(values("app", 3500), space), open(set(values("app", 3500), space)))
	}
	long := values("env", 60000)
	few := values("app", 1)
	for name, sets := range map[string][]*appsv1beta1.SidecarSet{
		"many long lists": sets, "a long list of namespace labels": {set(few, long), open(set(few, long))},
	} {
		s := compute(t, input(sets...))
		bytes := 0
		for i := range s.Entries {
			bytes += s.Entries[i].Size()
		}
		if bytes > 1<<20 || len(s.Entries) > 64 || len(s.Entries) == 0 {
			t.Errorf("%s: %d bytes in %d entries", name, bytes, len(s.Entries))
		}
		if len(s.Notes) == 0 {
			t.Errorf("%s: no note reports that more pods are sent", name)
		}
	}
}

// The specification has the webhook fail closed for every pod that it is about.
func TestGateForAll(t *testing.T) {
	in := input()
	in.Owned, in.All = true, true
	for _, e := range compute(t, in).Entries {
		if *e.FailurePolicy != admissionregistrationv1.Fail {
			t.Errorf("entry %s of the gate for all pods is %s", e.Name, *e.FailurePolicy)
		}
	}
}

// The order of the sets does not matter, and nothing of the input is changed.
func TestOrder(t *testing.T) {
	for seed := range uint64(200) {
		d := newDraw(seed)
		in := input(d.sets(8)...)
		given := in.contributions(t)
		before := in.contributions(t)
		first, err := scope.Plan(scope.Input{Client: in.Client, Namespace: in.Namespace, Contributions: given})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, given); diff != "" {
			t.Fatalf("seed %d: the input changed (-was +is):\n%s", seed, diff)
		}
		d.Shuffle(len(in.Sets), func(i, j int) { in.Sets[i], in.Sets[j] = in.Sets[j], in.Sets[i] })
		if diff := cmp.Diff(first, compute(t, in)); diff != "" {
			t.Fatalf("seed %d: in another order (-first +second):\n%s", seed, diff)
		}
		for _, e := range first.Entries {
			if !scope.Ours(e.Name) {
				t.Errorf("seed %d: %s is not known as ours", seed, e.Name)
			}
			if n := strings.Count(e.Name, "."); n != 2 {
				t.Errorf("seed %d: %s is no name that API servers accept", seed, e.Name)
			}
		}
	}
}

func TestOurs(t *testing.T) {
	for name, want := range map[string]bool{
		"mpod.kb.io": true, "mpod-open.kb.io": true, "mpod-0a1b2c3d.kb.io": true, "mpod-open-0a1b2c3d.kb.io": true,
		"mpod-part-2.kb.io": true, "mpod-open-0a1b2c3d-part-12.kb.io": true, "mpod-part-.kb.io": false,
		"mpod-part-x.kb.io": false,
		"mpods.kb.io":       false, "mpod-mine.kb.io": false, "mpod.example.com": false, "mpod-0a1b2c3d4e.kb.io": false,
		"mcloneset.kb.io": false, "": false,
		"mpod-.kb.io": false, "mpod0a1b2c3d.kb.io": false,
	} {
		if got := scope.Ours(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

// An own namespace is needed, for its pods would wait for themselves.
func TestOwnNamespace(t *testing.T) {
	if _, err := scope.Plan(scope.Input{}); err == nil {
		t.Error("no error")
	}
	in := input(newSet(t, "a", `selector: {matchLabels: {app: a}}`))
	in.Namespace = "mine"
	for _, e := range compute(t, in).Entries {
		if !slices.Contains(e.NamespaceSelector.MatchExpressions[1].Values, "mine") {
			t.Errorf("the webhook's own pods are sent: %v", e.NamespaceSelector)
		}
	}
}

// Where there is no service, the path is in the address.
func TestURL(t *testing.T) {
	in := input(open(newSet(t, "a", `selector: {matchLabels: {app: a}}`)),
		newSet(t, "b", `selector: {matchLabels: {app: b}}`))
	in.Client.Service, in.Client.URL = nil, ptr.To("https://localhost/mutate-pod")
	var got []string
	for _, e := range compute(t, in).Entries {
		got = append(got, *e.ClientConfig.URL)
	}
	if diff := cmp.Diff([]string{"https://localhost/mutate-pod", "https://localhost/mutate-pod-open"}, got); diff != "" {
		t.Error(diff)
	}
}
