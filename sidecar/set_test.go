package sidecar_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
)

// faults are the fields of an error of Parse.
func faults(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T is not joined", err)
	}
	var fields []string
	for _, e := range joined.Unwrap() {
		var wrong *sidecar.FieldError
		if !errors.As(e, &wrong) || wrong.Set != "s" || !strings.HasPrefix(e.Error(), "sidecarset s: "+wrong.Field+": ") {
			t.Fatalf("%v names no field", e)
		}
		fields = append(fields, wrong.Field)
	}
	return fields
}

func TestParse(t *testing.T) {
	odd := withExpression("k", "Odd")
	oddUpdates := func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Selector = odd }
	cases := map[string]struct {
		why     string
		changes []setChange
		want    []string
	}{
		"good": {why: "nothing is wrong", changes: []setChange{of(container("c"))}},
		"nothing": {
			why: "a set that selects nothing is one", changes: []setChange{selects(nil), inNamespace(&metav1.LabelSelector{})},
		},
		"selectors": {
			why:     "each is reported",
			changes: []setChange{selects(odd), inNamespace(odd)},
			want:    []string{"spec.selector", "spec.namespaceSelector"},
		},
		"a bad value": {
			why: "no pod can have it", changes: []setChange{selects(withLabels("app", "?"))}, want: []string{"spec.selector"},
		},
		"not pinned": {why: "nobody asks for it", changes: []setChange{oddUpdates, partition("abc%")}},
		"pinned": {
			why:     "it says which pods get what",
			changes: []setChange{oddUpdates, partition("abc%"), pins(ptr.To("r"), nil, partial)},
			want:    []string{"spec.updateStrategy.selector", "spec.updateStrategy.partition"},
		},
		"pinned always": {
			why: "all pods get the same", changes: []setChange{oddUpdates, partition("abc%"), pins(ptr.To("r"), nil, always)},
		},
		"policies": {
			why: "those of all containers",
			changes: []setChange{
				of(container("a"), container("b", computes("avg", "(", "cpu", "", "", ""))),
				ofInit(container("i", native, computes(sum, "("))),
			},
			want: []string{"spec.initContainers[0].resourcesPolicy", "spec.containers[1].resourcesPolicy"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			object := sidecarSet("s", c.changes...)
			was := object.DeepCopy()
			set, err := sidecar.Parse(object)
			if got := faults(t, err); !slices.Equal(c.want, got) {
				t.Errorf("%s: want %v, got %v", c.why, c.want, got)
			}
			if set == nil || set.Object() != object || set.Name() != "s" {
				t.Fatalf("there is no set of it: %v", set)
			}
			sameAs(t, "the object", was, object)
		})
	}
}

// TestBrokenSets: what cannot be read fails the pods that it might mean, and no others.
func TestBrokenSets(t *testing.T) {
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: pairs("team", "blue")}}
	half := func(labels ...string) *metav1.LabelSelector {
		s := withLabels(labels...)
		s.MatchExpressions = withExpression("k", "Odd").MatchExpressions
		return s
	}
	cases := map[string]struct {
		why     string
		changes []setChange
		want    string
	}{
		"it means others": {
			why: "the half that can be read says so", changes: []setChange{selects(half("app", "bank"))},
		},
		"a bad value of others": {why: "the same", changes: []setChange{selects(withLabels("app", "bank", "tier", "?"))}},
		"it might mean it": {
			why: "the cause is unknown", changes: []setChange{selects(half("app", "shop"))}, want: "spec.selector",
		},
		"it might mean anything": {
			why: "the cause is unknown", changes: []setChange{selects(withExpression("k", "Odd"))}, want: "spec.selector",
		},
		"other namespaces": {
			why:     "the pod is not there",
			changes: []setChange{selects(half("app", "shop")), inNamespace(withLabels("team", "red"))},
		},
		"half other namespaces": {
			why: "the pod is surely not there", changes: []setChange{inNamespace(half("team", "red"))},
		},
		"perhaps the namespace": {
			why: "the cause is unknown", changes: []setChange{inNamespace(half("team", "blue"))}, want: "spec.namespaceSelector",
		},
		"odd namespaces, other pod": {
			why:     "it means other pods",
			changes: []setChange{selects(withLabels("app", "bank")), inNamespace(withExpression("k", "Odd"))},
		},
		"both": {
			why:     "the namespace is reported",
			changes: []setChange{selects(half("app", "shop")), inNamespace(half("team", "blue"))},
			want:    "spec.namespaceSelector",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			others := parse(sidecarSet("a"), sidecarSet("s", c.changes...),
				sidecarSet("z", append([]setChange{selects(withExpression("k", "Odd"))}, c.changes...)...))
			got, err := sidecar.Select(podOf(), shop, others[:2])
			var wrong *sidecar.FieldError
			if c.want == "" {
				if err != nil || len(got.Sets) != 1 || got.Sets[0].Name() != "a" {
					t.Errorf("%s: %v, %v", c.why, got, err)
				}
				return
			}
			if !errors.As(err, &wrong) || wrong.Set != "s" || wrong.Field != c.want || got.Sets != nil {
				t.Errorf("%s: want %s, got %v, %v", c.why, c.want, got, err)
			}
			slices.Reverse(others)
			if _, again := sidecar.Select(podOf(), shop, others); again == nil || again.Error() != err.Error() {
				t.Errorf("of two broken sets the first by name is reported: want %v, got %v", err, again)
			}
		})
	}
}

// TestBrokenParts: a part that cannot be read matters where it is needed.
func TestBrokenParts(t *testing.T) {
	set := parse(sidecarSet("s", pins(ptr.To("r"), nil, partial), partition("abc%"), updates("tier", "x")))[0]
	if held, err := set.HoldsBack(podOf(), 0); !held || err != nil {
		t.Errorf("the selector holds it back already: %v, %v", held, err)
	}
	pod := podOf()
	pod.Labels["tier"] = "x"
	if held, err := set.HoldsBack(pod, 0); held || err == nil {
		t.Errorf("nobody knows: %v, %v", held, err)
	}
	if held, err := parse(sidecarSet("s"))[0].HoldsBack(pod, 0); held || err != nil {
		t.Errorf("there is nothing that it could be held back to: %v, %v", held, err)
	}
	broken := revisionOf("s", "r", 1, "",
		`{"spec":{"containers":[{"name":"c","resourcesPolicy":{"targetContainersMode":"avg","resourcesExpr":{}}}]}}`)
	var wrong *sidecar.FieldError
	if _, err := sidecar.Restore(set, broken); !errors.As(err, &wrong) ||
		wrong.Field != "spec.containers[0].resourcesPolicy" || !strings.HasPrefix(err.Error(), "restore revision r: ") {
		t.Errorf("a revision that no pod can get: %v", err)
	}
}

func TestMatches(t *testing.T) {
	blue := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: pairs("team", "blue")}}
	in := func(s *metav1.LabelSelector) *v1beta1.SidecarSet { return sidecarSet("s", inNamespace(s)) }
	cases := map[string]struct {
		set       *v1beta1.SidecarSet
		namespace *corev1.Namespace
		want      bool
		err       string
	}{
		"all":          {in(nil), nil, true, ""},
		"any":          {in(&metav1.LabelSelector{}), blue, true, ""},
		"not known":    {in(withLabels("team", "blue")), nil, false, ""},
		"selected":     {in(withLabels("team", "blue")), blue, true, ""},
		"not selected": {in(withLabels("team", "red")), blue, false, ""},
		"broken": {
			set:       in(withExpression("k", "Odd")),
			namespace: blue,
			err:       `sidecarset s: spec.namespaceSelector: "Odd" is not a valid label selector operator`,
		},
		"broken, for not this": {
			set: in(&metav1.LabelSelector{
				MatchLabels: pairs("team", "red"), MatchExpressions: withExpression("k", "Odd").MatchExpressions,
			}),
			namespace: blue,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := sidecar.MatchesNamespace(c.set, c.namespace)
			if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	_, err := sidecar.MatchesPod(sidecarSet("s", selects(withExpression("k", "Odd"))), podOf())
	if want := `sidecarset s: spec.selector: "Odd" is not a valid label selector operator`; err == nil ||
		err.Error() != want {
		t.Errorf("want %s, got %v", want, err)
	}
}
