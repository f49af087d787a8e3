package podscope

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/write"
)

func newSet(name string, generation int64) *appsv1beta1.SidecarSet {
	set := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: generation}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	return set
}

// untyped returns sets as the cache has them.
func untyped(t *testing.T, sets ...*appsv1beta1.SidecarSet) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, set := range sets {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	return all
}

// provisionalOf returns the provisional entry of a set.
func provisionalOf(t *testing.T, set *appsv1beta1.SidecarSet) entry {
	t.Helper()
	e, err := scope.Provisional(scope.Input{Namespace: "n", Client: scope.Reach{Namespace: "n", Service: "s"}.Client()}, set)
	if err != nil || e == nil {
		t.Fatal(e, err)
	}
	return *e
}

// moment is what is observed at a time, and what becomes of the one provisional entry.
type moment struct {
	at      time.Duration
	sets    []*appsv1beta1.SidecarSet
	entry   *appsv1beta1.SidecarSet // the entry is for this state; nil for no entry
	covered bool
	off     bool
	over    bool
	next    time.Duration
}

func TestProvisional(t *testing.T) {
	one, two := newSet("a", 1), newSet("a", 2)
	reborn := newSet("a", 1)
	reborn.UID = "another"
	sets := func(all ...*appsv1beta1.SidecarSet) []*appsv1beta1.SidecarSet { return all }
	cases := map[string]struct {
		why     string
		moments []moment
	}{
		"a set that comes": {"its entry goes a second after the others have it", []moment{
			{at: 0, entry: one, covered: true, next: lost},
			{at: 5 * time.Second, entry: one, sets: sets(one), next: settle},
			{at: 6 * time.Second, entry: one, sets: sets(one), covered: true, next: settle},
			{at: 6500 * time.Millisecond, entry: one, sets: sets(one), covered: true, next: 500 * time.Millisecond},
			{at: 7 * time.Second, entry: one, sets: sets(one), covered: true, over: true},
		}},
		"a set that does not come": {"its entry goes after a minute", []moment{
			{at: 0, entry: one, covered: true, next: lost},
			{at: 59 * time.Second, entry: one, covered: true, next: time.Second},
			{at: time.Minute, entry: one, covered: true, over: true},
		}},
		"a set that comes and goes": {"it was covered, and will not come again", []moment{
			{at: 0, entry: one, sets: sets(one), covered: true, next: settle},
			{at: 500 * time.Millisecond, entry: one, covered: true, next: 500 * time.Millisecond},
			{at: time.Second, entry: one, covered: true, over: true},
		}},
		"a change that comes later": {"an earlier state of the set does not count", []moment{
			{at: 0, entry: two, sets: sets(one), covered: true, next: lost},
			{at: 2 * time.Second, entry: two, sets: sets(one), covered: true, next: lost - 2*time.Second},
			{at: 3 * time.Second, entry: two, sets: sets(two), covered: true, next: settle},
			{at: 4 * time.Second, entry: two, sets: sets(two), covered: true, over: true},
		}},
		"a set that goes and comes": {"the entry is of another set now", []moment{
			{at: 0, entry: one, sets: sets(one), covered: true, next: settle},
			{at: time.Second, entry: reborn, covered: true, next: lost},
			{at: 2 * time.Second, entry: reborn, sets: sets(reborn), covered: true, next: settle},
			{at: 3 * time.Second, entry: reborn, sets: sets(reborn), covered: true, over: true},
		}},
		"an entry that comes back": {"it is a new one", []moment{
			{at: 0, entry: one, sets: sets(one), covered: true, next: settle},
			{at: time.Second, sets: sets(one), covered: true},
			{at: 2 * time.Second, entry: one, sets: sets(one), covered: true, next: settle},
		}},
		"off": {"without the webhook there is none", []moment{{at: 0, entry: one, off: true, over: true}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			var a provisional
			for _, m := range c.moments {
				have := empty()
				have.Webhooks = []entry{wanted("mpod.kb.io", "a"), wanted("theirs.example.com", "true")}
				var want []string
				if m.entry != nil {
					have.Webhooks = append(have.Webhooks, provisionalOf(t, m.entry))
				}
				if m.over {
					want = []string{have.Webhooks[2].Name}
				}
				now := begin.Add(m.at)
				a.observe(have, untyped(t, m.sets...), now)
				if m.covered {
					a.covered(now)
				}
				over, next := a.over(m.off, now)
				if diff := cmp.Diff(want, over); diff != "" || next != m.next {
					t.Errorf("%s: at %s the next one is in %s, want %s (-want +got):\n%s", c.why, m.at, next, m.next, diff)
				}
			}
		})
	}
}

// A crowd of sets that do not come is swept out as one.
func TestCrowd(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	have := empty()
	var a provisional
	for i := range 60 {
		have.Webhooks = append(have.Webhooks, provisionalOf(t, newSet(fmt.Sprintf("s%d", i), 1)))
		a.observe(have, nil, begin.Add(time.Duration(i)*100*time.Millisecond))
	}
	late := newSet("late", 1)
	have.Webhooks = append(have.Webhooks, provisionalOf(t, late))
	a.observe(have, nil, begin.Add(30*time.Second))
	come := newSet("come", 1)
	have.Webhooks = append(have.Webhooks, provisionalOf(t, come))
	now := begin.Add(lost)
	a.observe(have, untyped(t, come), now)
	names, next := a.over(false, now)
	if len(names) != 60 || slices.Contains(names, provisionalOf(t, late).Name) || slices.Contains(names, provisionalOf(t, come).Name) || next != settle {
		t.Errorf("%d entries go at once, and the next one in %s", len(names), next)
	}
}

// Entries that were written ahead are in the way of no other write, and go only when they are over.
func TestLeftAlone(t *testing.T) {
	have, _ := written(t, empty(), wanted("mpod.kb.io", "a"))
	early := provisionalOf(t, newSet("a", 1))
	have.Webhooks = append([]entry{early}, have.Webhooks...)
	if _, patch := written(t, have, wanted("mpod.kb.io", "a")); len(patch) > 0 {
		t.Errorf("it is a reason to write: %v", patch)
	}
	after, _ := written(t, have, wanted("mpod.kb.io", "b"))
	if len(after.Webhooks) != 2 || after.Webhooks[0].Name != early.Name || after.Webhooks[1].MatchConditions[0].Expression != "b" {
		t.Errorf("%+v", after.Webhooks)
	}
	p, err := makePlan(have, []entry{wanted("mpod.kb.io", "a")}, early.Name)
	if err != nil || len(p.patch) != 2 || p.patch[0].Op != "test" || p.patch[1] != write.Remove("/webhooks/0") {
		t.Errorf("%v %v", p.patch, err)
	}
}

// Whoever puts them back has them taken away less and less.
func TestSweepsSlowDown(t *testing.T) {
	have := empty()
	have.Webhooks = []entry{provisionalOf(t, newSet("a", 1))}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var a provisional
	a.observe(have, nil, now)
	word := a.sweep([]string{have.Webhooks[0].Name})
	p := pace{least: betweenSweeps, most: 5 * time.Minute}
	sweeps := 0
	for end := now.Add(time.Hour); now.Before(end); {
		wait := p.wait(word, now)
		now = now.Add(max(wait, time.Millisecond))
		if wait <= 0 {
			p.wrote(word, now)
			sweeps++
		}
	}
	if word == "" || sweeps > 25 {
		t.Errorf("%q: %d writes in an hour", word, sweeps)
	}
}
