package steady_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/controllers/podscope/internal/steady"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// story is contributions over time.
type story struct {
	*testing.T

	state  steady.State
	now    time.Time
	policy steady.Policy
	// last is the last result.
	last steady.Result
}

func begin(t *testing.T, words string) *story {
	t.Helper()
	s := &story{T: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return s.want(words)
}

// want passes on words, of which each is a namespace and a name. Names with an exclamation mark fail closed, those with
// a tilde are selected by labels.
func (s *story) want(words string) *story {
	s.Helper()
	s.last = steady.Next(contributions(strings.Fields(words)), s.state, s.policy, s.now)
	if diff := cmp.Diff(s.last.Contributions,
		steady.Next(contributions(strings.Fields(words)), s.state, s.policy, s.now).Contributions); diff != "" {
		s.Errorf("the former state has changed: %s", diff)
	}
	s.state = s.last.State
	return s
}

// after is the same, later.
func (s *story) after(d time.Duration, words string) *story {
	s.Helper()
	s.now = s.now.Add(d)
	return s.want(words)
}

// has fails unless exactly words are contributed. A word without a name is a namespace of which all pods are sent.
func (s *story) has(why, words string) *story {
	s.Helper()
	got := []string{}
	for _, c := range s.last.Contributions {
		for _, l := range c.Lists {
			for _, value := range l.Of {
				got = append(got, strings.Replace(value, "/x/", "/", 1)+map[bool]string{false: "!"}[l.Ignore])
			}
		}
		for _, one := range c.Selections {
			got = append(got, one.In+"/~"+one.Pod.MatchLabels["app"])
		}
	}
	want := strings.Fields(words)
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s (-want +got):\n%s", why, diff)
	}
	return s
}

func contributions(words []string) []scope.Contribution {
	rand.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	all := make([]scope.Contribution, 2)
	for _, word := range words {
		namespace, name, _ := strings.Cut(word, "/")
		closed, closes := strings.CutSuffix(name, "!")
		label, labelled := strings.CutPrefix(name, "~")
		if labelled {
			all[0].Selections = append(all[0].Selections, scope.Selection{
				Object: word, In: namespace, Ignore: true, Pod: &metav1.LabelSelector{MatchLabels: map[string]string{"app": label}},
			})
			continue
		}
		at := slices.IndexFunc(all[1].Lists, func(l scope.List) bool { return l.Ignore == !closes })
		if at < 0 {
			at = len(all[1].Lists)
			all[1].Lists = append(all[1].Lists, scope.List{Value: "owner", Ignore: !closes})
		}
		all[1].Lists[at].Of = append(all[1].Lists[at].Of, namespace+"/x/"+closed)
	}
	return all
}

// A selection that is gone stays for a minute, and goes together with others.
func TestKeep(t *testing.T) {
	s := begin(t, "a/one a/~two b/one! b/two")
	s.has("the beginning", "a/one a/~two b/one! b/two")
	s.after(time.Second, "a/one").has("they are gone a moment", "a/one a/~two b/one! b/two")
	s.after(7*time.Second, "").has("another one follows", "a/one a/~two b/one! b/two")
	if s.last.RequeueAfter != 62*time.Second { // rounded up to a sixth of a minute
		t.Errorf("the next look is after %s", s.last.RequeueAfter)
	}
	s.after(50*time.Second, "b/two").has("one comes back, which is no change", "a/one a/~two b/one! b/two")
	s.after(12*time.Second, "b/two").has("they go together", "b/two")
	if s.last.RequeueAfter != 0 {
		t.Errorf("another look after %s", s.last.RequeueAfter)
	}
}

// A namespace that adds one selection after the other has all of its pods sent until it is calm. What fails closed and
// what is ignored do not widen each other, nor those of other namespaces.
func TestWidened(t *testing.T) {
	s := begin(t, "a/one! b/one")
	for i := range 20 {
		s.after(100*time.Millisecond, fmt.Sprintf("a/one! a/n%d b/one", i))
	}
	if len(s.last.Widened) > 0 {
		t.Fatal("20 changes widen the namespace")
	}
	s.after(time.Second, "a/one! a/last b/one").has("21 changes are too many", "a/one! a b/one")
	if n := s.last.Notes; len(n) != 1 || n[0].Code != steady.NoteWidened ||
		!strings.Contains(n[0].Text, "all pods of a are sent") {
		t.Errorf("notes %v", n)
	}
	for i := range 100 {
		s.after(time.Second, fmt.Sprintf("a/one! a/m%d b/one", i)).has("further changes cost nothing", "a/one! a b/one")
	}
	s.after(time.Second, "a/one! b/one").has("also without any", "a/one! a b/one")
	s.after(s.last.RequeueAfter-time.Millisecond, "a/one! a/two b/one").has("a change makes it wait for longer",
		"a/one! a b/one")
	if s.last.RequeueAfter > 30*time.Second {
		t.Errorf("a single change costs %s", s.last.RequeueAfter)
	}
	s.after(s.last.RequeueAfter, "a/one! a/two b/one").has("calm", "a/one! a/two b/one")
	for i := range 20 {
		s.after(time.Millisecond, fmt.Sprintf("a/one! a/new%d! b/one", i))
	}
	s.after(time.Millisecond, "a/one! a/last! b/one").has("what fails closed", "a! b/one a/two")
}

// A change every 16 seconds widens nothing.
func TestSlowChanges(t *testing.T) {
	s := begin(t, "")
	for i := range 200 {
		if s.after(16*time.Second, fmt.Sprintf("a/n%d", i)); len(s.last.Widened) > 0 {
			t.Fatalf("widened after %d changes", i)
		}
	}
}

// What is kept of a namespace is bounded.
func TestKeptBounded(t *testing.T) {
	for name, words := range map[string]func(n int) string{
		"many": func(n int) string { return fmt.Sprint("a/n", n) },
		"long": func(n int) string { return fmt.Sprintf("a/~%d%s", n, strings.Repeat("x", 200)) },
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			for n := range 33 {
				all = append(all, words(n))
			}
			s := begin(t, strings.Join(append(all, "b/one"), " "))
			s.after(time.Second, "b/one").has("too much would be kept", "a b/one")
			s.after(s.last.RequeueAfter, "b/one").has("calm", "b/one")
		})
	}
}

// What the objects of the cluster select, and conditions, pass as they are.
func TestClusterPasses(t *testing.T) {
	in := []scope.Contribution{{
		Selections: []scope.Selection{{
			Object: "set", Pod: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		}},
		Conditions: []scope.Condition{{Expression: "true"}},
	}}
	first := steady.Next(in, steady.State{}, steady.Policy{}, time.Time{})
	if diff := cmp.Diff(in, first.Contributions); diff != "" {
		t.Error(diff)
	}
	in[0].Selections = nil
	if got := steady.Next(in, first.State, steady.Policy{}, time.Time{}); len(got.Contributions[0].Selections) > 0 {
		t.Errorf("%+v", got)
	}
}

// Selectors of any text are told apart.
func TestSelectorsApart(t *testing.T) {
	var all []scope.Selection
	for _, l := range []metav1.LabelSelector{
		{MatchLabels: map[string]string{"a": "b;1:c=d"}},
		{MatchLabels: map[string]string{"a": "b", "c": "d"}},
		{MatchLabels: map[string]string{"a": "b"}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: []string{"b", "c"}}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: []string{"b,c"}}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "NotIn", Values: []string{"b", "c"}}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Exists"}, {Key: "b", Operator: "Exists"}}},
		{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Exists", Values: []string{"b", "Exists"}}},
		},
	} {
		all = append(all, scope.Selection{Object: "a/one", In: "a", Pod: &l})
	}
	in := []scope.Contribution{{Selections: append(all, scope.Selection{Object: "a/none", In: "a"})}}
	got := steady.Next(in, steady.State{}, steady.Policy{}, time.Time{}).Contributions[0].Selections
	if len(got) != len(in[0].Selections) {
		t.Errorf("%d selections of %d are left: %+v", len(got), len(in[0].Selections), got)
	}
}

// The state keeps nothing of namespaces that are gone.
func TestForgets(t *testing.T) {
	s := begin(t, "")
	for i := range 50 {
		s.after(time.Second, fmt.Sprintf("n%d/one", i))
	}
	s.after(10*time.Minute, "").after(2*time.Minute, "").has("nothing is left", "")
	if size := fmt.Sprintf("%+v", s.state); strings.Contains(size, "n1") {
		t.Errorf("state %s", size)
	}
}
