package sidecarsets_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/internal/sidecarsets"
)

const (
	in        = metav1.LabelSelectorOpIn
	notIn     = metav1.LabelSelectorOpNotIn
	exists    = metav1.LabelSelectorOpExists
	notExists = metav1.LabelSelectorOpDoesNotExist
	name      = "kubernetes.io/metadata.name"
)

func with(keysAndValues ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(keysAndValues); i += 2 {
		s.MatchLabels[keysAndValues[i]] = keysAndValues[i+1]
	}
	return s
}

func expr(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: key, Operator: operator, Values: values,
	}}}
}

func TestOverlap(t *testing.T) {
	cases := map[string]struct {
		why       string
		selectors []*metav1.LabelSelector
		want      map[string]string
	}{
		"the same": {
			why:       "what both ask for",
			selectors: []*metav1.LabelSelector{with("app", "x"), with("app", "x")},
			want:      map[string]string{"app": "x"},
		},
		"exists elsewhere": {
			why:       "a key that the other does not name can be there",
			selectors: []*metav1.LabelSelector{with("app", "x"), expr("tier", exists)},
			want:      map[string]string{"app": "x", "tier": "any-0"},
		},
		"in and in": {
			why:       "the values that both allow, the first of them",
			selectors: []*metav1.LabelSelector{expr("app", in, "c", "b", "a"), expr("app", in, "d", "c", "b")},
			want:      map[string]string{"app": "b"},
		},
		"exists and not in": {
			why:       "there are more values than are ruled out",
			selectors: []*metav1.LabelSelector{expr("app", exists), expr("app", notIn, "any-0", "any-1")},
			want:      map[string]string{"app": "any-2"},
		},
		"nil": {
			why: "it selects all", selectors: []*metav1.LabelSelector{nil, with("app", "x")},
			want: map[string]string{"app": "x"},
		},
		"no selectors": {why: "there is no requirement", want: map[string]string{}},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			for range 2 {
				got, found, err := sidecarsets.Overlap(c.selectors...)
				if diff := cmp.Diff(c.want, got); err != nil || !found || diff != "" {
					t.Errorf("%s: found %v, %v (-want +got):\n%s", c.why, found, err, diff)
				}
				slices.Reverse(c.selectors)
			}
		})
	}
}

func TestOverlapRefuses(t *testing.T) {
	got, found, err := sidecarsets.Overlap(nil, expr("app", "Odd"))
	if want := `parse selector: "Odd" is not a valid label selector operator`; err == nil || err.Error() != want ||
		found || got != nil {
		t.Errorf("want %s, got %v, %v, %v", want, err, found, got)
	}
}

// TestOverlapIsExact tries all labels of a small universe, which has a value that no selector names.
func TestOverlapIsExact(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	names, values := []string{"a", "b", name}, []string{"x", "y", "z", "other"}
	universe := []map[string]string{{}}
	for _, n := range names {
		for _, smaller := range slices.Clone(universe) {
			for _, v := range values {
				larger := map[string]string{n: v}
				maps.Copy(larger, smaller)
				universe = append(universe, larger)
			}
		}
	}
	found, none := 0, 0
	for i := range int64(4000) {
		r := rand.New(rand.NewSource(*seed + i))
		selectors := make([]*metav1.LabelSelector, 2+r.Intn(2))
		for j := range selectors {
			selectors[j] = draw(r, names, values[:3])
		}
		parsed := parse(t, selectors)
		want := slices.ContainsFunc(universe, func(l map[string]string) bool { return all(parsed, l) })
		shared, got, err := sidecarsets.Overlap(selectors...)
		switch {
		case err != nil, got != want:
			t.Fatalf("-seed=%d: want %v, got %v %v, %v, of %s", *seed+i, want, got, shared, err, told(selectors))
		case got && !all(parsed, shared):
			t.Fatalf("-seed=%d: %v is not selected by all of %s", *seed+i, shared, told(selectors))
		case got:
			found++
		default:
			none++
		}
	}
	if found < 500 || none < 500 {
		t.Errorf("the cases are too tame: %d found, %d not", found, none)
	}
}

func draw(r *rand.Rand, names, values []string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	for _, n := range names {
		if r.Intn(4) == 0 {
			s.MatchLabels = map[string]string{n: values[r.Intn(len(values))]}
		}
	}
	for range r.Intn(4) {
		e := metav1.LabelSelectorRequirement{
			Key: names[r.Intn(len(names))], Operator: []metav1.LabelSelectorOperator{in, notIn, exists, notExists}[r.Intn(4)],
		}
		if e.Operator == in || e.Operator == notIn {
			for range 1 + r.Intn(3) {
				e.Values = append(e.Values, values[r.Intn(len(values))])
			}
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

// parse gives selectors that are asked themselves.
func parse(t *testing.T, selectors []*metav1.LabelSelector) []labels.Selector {
	t.Helper()
	parsed := make([]labels.Selector, len(selectors))
	for i, s := range selectors {
		var err error
		if parsed[i], err = metav1.LabelSelectorAsSelector(s); err != nil {
			t.Fatal(err)
		}
	}
	return parsed
}

func all(selectors []labels.Selector, of map[string]string) bool {
	return !slices.ContainsFunc(selectors, func(s labels.Selector) bool { return !s.Matches(labels.Set(of)) })
}

func told(selectors []*metav1.LabelSelector) string {
	var text []string
	for _, s := range selectors {
		text = append(text, metav1.FormatLabelSelector(s))
	}
	return strings.Join(text, " | ")
}

func ExampleOverlap() {
	shared, found, err := sidecarsets.Overlap(
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: in, Values: []string{"bank", "shop"}}, {Key: "tier", Operator: exists},
		}},
	)
	fmt.Println(shared, found, err)
	// Output: map[app:shop tier:any-0] true <nil>
}
