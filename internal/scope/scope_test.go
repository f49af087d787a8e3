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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares the entries with a file, as a reviewer would want to see them.
func golden(t *testing.T, name string, s scope.Scope) {
	t.Helper()
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
	for _, e := range s.Entries {
		if !scope.Ours(e.Name) || strings.Count(e.Name, ".") != 2 {
			t.Errorf("%s is not known as ours, or no name that API servers accept", e.Name)
		}
	}
}

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
	everything.Closed, everything.Open = []string{"db"}, []string{"shop", "web"}
	forAll := input()
	forAll.All, forAll.Launch = true, true
	owned := input()
	owned.Owned, owned.Launch = true, true
	for name, in := range map[string]world{
		"everything": everything, "gate-for-all": forAll, "no-sets": owned, "nothing": input(),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, compute(t, in)) })
	}
}

// What does not fit sends all pods, with a note, and fits into one object of etcd.
func TestBounds(t *testing.T) {
	many := func(n int, spec string) world {
		var in world
		for i := range n {
			in.Sets = append(in.Sets, newSet(t, fmt.Sprintf("s%05d", i), fmt.Sprintf(spec, i)))
		}
		return in
	}
	var names []string
	for i := range 20000 {
		names = append(names, fmt.Sprintf("namespace-%05d", i))
	}
	long := `{selector: {matchExpressions: [{key: app, operator: In, values: [a` + strings.Repeat(", some-long-value", 2500) +
		`-%[1]d]}]}, namespaceSelector: {matchLabels: {env: e%[1]d}}}`
	for name, c := range map[string]struct {
		why   string
		in    world
		notes int
		// entries in all, and those that send all pods.
		entries, all int
	}{
		"a thousand of one label": {why: "one list", in: many(1000, `selector: {matchLabels: {app: app-%d}}`), entries: 1},
		"a hundred of two labels": {
			why: "flat clauses", in: many(100, `selector: {matchLabels: {app: app-%[1]d, zone: zone-%[1]d}}`), entries: 1,
		},
		"too many of two labels": {
			why: "API servers compile them too long",
			in:  many(200, `selector: {matchLabels: {app: app-%[1]d, zone: zone-%[1]d}}`), notes: 1, entries: 1, all: 1,
		},
		"too long a list": {
			why: "API servers do not accept it",
			in:  many(1, `selector: {matchExpressions: [{key: app, operator: In, values: [n-%d`+strings.Repeat(",n-ame", 20000)+`]}]}`),
			// the values are not distinct, so that the list is short
			entries: 1,
		},
		"namespaceSelectors": {
			why: "each has an entry", in: many(12, `{selector: {matchLabels: {app: a}}, namespaceSelector: {matchLabels: {env: e%d}}}`),
			entries: 12,
		},
		"too many namespaceSelectors": {
			why: "API servers evaluate each entry for each pod",
			in:  many(40, `{selector: {matchLabels: {app: a}}, namespaceSelector: {matchLabels: {env: e%d}}}`), notes: 1, entries: 1, all: 1,
		},
		"long ones": {why: "distinct values are few", in: many(12, long), entries: 12},
		"namespaces": {
			why: "they are in a selector", in: world{Open: names[:4000], Closed: names[:4000]}, entries: 2,
		},
		"too many namespaces": {
			why: "pods of all namespaces are sent", in: world{Open: names, Closed: names}, notes: 2, entries: 2,
		},
		"an unreadable set": {
			why: "it is left out, or its rest selects",
			in: world{Sets: []*appsv1beta1.SidecarSet{
				newSet(t, "a", `selector: {matchLabels: {app: "not a value!"}}`),
				newSet(t, "b", `selector: {matchLabels: {app: a, "not a key!": ""}}`),
				newSet(t, "c",
					`{selector: {matchLabels: {app: "not a value!"}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: one}}}`),
			}}, notes: 3, entries: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Input = input().Input
			s := compute(t, c.in)
			bytes, all := 0, 0
			for _, e := range s.Entries {
				bytes += e.Size()
				if len(e.MatchConditions) > 0 && e.MatchConditions[0].Expression == "true" {
					all++
				}
			}
			if len(s.Entries) != c.entries || all != c.all || len(s.Notes) != c.notes || bytes > 1<<20 {
				t.Errorf("%s: %d entries of %d bytes, %d for all pods, notes %v", c.why, len(s.Entries), bytes, all, s.Notes)
			}
		})
	}
}

// Entries that are each within their bounds, and together are not, become one.
func TestBytes(t *testing.T) {
	in := input()
	for i := range 12 {
		for j := range 40 {
			var values []string
			for k := range 45 {
				values = append(values, fmt.Sprintf("v-%d-%d-%d-%s", i, j, k, strings.Repeat("x", 8)))
			}
			spec := fmt.Sprintf(`{selector: {matchExpressions: [{key: app, operator: In, values: [%s]}, {key: z, operator: Exists}]}, namespaceSelector: {matchLabels: {env: e%d}}}`,
				strings.Join(values, ","), i)
			in.Sets = append(in.Sets, newSet(t, "closed", spec), open(newSet(t, "open", spec)))
		}
	}
	s := compute(t, in)
	if len(s.Entries) != 1 || s.Entries[0].MatchConditions[0].Expression != "true" ||
		*s.Entries[0].FailurePolicy != admissionregistrationv1.Fail || len(s.Notes) != 1 {
		t.Errorf("%d entries, notes %v", len(s.Entries), s.Notes)
	}
}

// The order of the sets does not matter, and nothing of the input is changed.
func TestOrder(t *testing.T) {
	for seed := range uint64(200) {
		d := newDraw(seed)
		in := input(d.sets(8)...)
		given, before := in.contributions(t), in.contributions(t)
		first := scope.Plan(scope.Input{Client: in.Client, Namespace: in.Namespace, Contributions: given})
		if diff := cmp.Diff(before, given); diff != "" {
			t.Fatalf("seed %d: the input changed (-was +is):\n%s", seed, diff)
		}
		d.Shuffle(len(in.Sets), func(i, j int) { in.Sets[i], in.Sets[j] = in.Sets[j], in.Sets[i] })
		if diff := cmp.Diff(first, compute(t, in)); diff != "" {
			t.Fatalf("seed %d: in another order (-first +second):\n%s", seed, diff)
		}
	}
}

func TestOurs(t *testing.T) {
	for name, want := range map[string]bool{
		"mpod.kb.io": true, "mpod-open.kb.io": true, "mpod-0a1b2c3d.kb.io": true, "mpod-open-0a1b2c3d.kb.io": true,
		"mpod-part-2.kb.io": true, "mpod-open-0a1b2c3d-part-12.kb.io": true, "vpodeviction-exempt-part-2.kb.io": true,
		"mpod-part-.kb.io": false, "mpod-part-x.kb.io": false,
		"mpods.kb.io": false, "mpod-mine.kb.io": false, "mpod.example.com": false, "mpod-0a1b2c3d4e.kb.io": false,
		"mcloneset.kb.io": false, "": false, "mpod-.kb.io": false, "mpod0a1b2c3d.kb.io": false,
	} {
		if got := scope.Ours(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

// Pods of the own namespace would wait for themselves.
func TestOwnNamespace(t *testing.T) {
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
