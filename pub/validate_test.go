package pub_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/pub"
)

// brief is each fault as its type and path.
func brief(faults field.ErrorList) []string {
	var all []string
	for _, f := range faults {
		all = append(all, string(f.Type)+" "+f.Field)
	}
	return all
}

func TestValidate(t *testing.T) {
	const pods, amounts = "spec.selector, targetRef", "spec.maxUnavailable, minAvailable"
	one := maxUnavailable("1")
	edit := func(change func(*object)) *object { return newObject("web", one, change) }
	cases := map[string]struct {
		why    string
		object *object
		others []*object
		want   []string
	}{
		"selector": {"valid", newObject("web", one), nil, nil},
		"target":   {"valid", newObject("web", one, targeted("Deployment", "web")), nil, nil},
		"neither": {
			why:    "one of both is needed",
			object: edit(func(b *object) { b.Spec.Selector = nil }),
			want:   []string{"FieldValueRequired " + pods},
		},
		"both": {
			why:    "they exclude each other",
			object: edit(func(b *object) { s := b.Spec.Selector; targeted("Deployment", "web")(b); b.Spec.Selector = s }),
			want:   []string{"FieldValueRequired " + pods},
		},
		"incomplete target": {
			why:    "the name is missing",
			object: newObject("web", one, targeted("Deployment", "")),
			want:   []string{"FieldValueInvalid spec.targetRef"},
		},
		"malformed version": {
			why:    "it cannot be parsed",
			object: edit(func(b *object) { targeted("Deployment", "web")(b); b.Spec.TargetReference.APIVersion = "a/b/c" }),
			want:   []string{"FieldValueInvalid spec.targetRef"},
		},
		"empty selector": {
			why:    "it would select nothing",
			object: edit(func(b *object) { b.Spec.Selector = &metav1.LabelSelector{} }),
			want:   []string{"FieldValueInvalid spec.selector"},
		},
		"malformed selector": {
			why:    "the rules of Kubernetes",
			object: edit(func(b *object) { b.Spec.Selector.MatchLabels["-"] = "a" }),
			want:   []string{"FieldValueInvalid spec.selector.matchLabels"},
		},
		"no amount": {
			why: "one of both is needed", object: newObject("web"), want: []string{"FieldValueRequired " + amounts},
		},
		"both amounts": {
			why:    "they exclude each other",
			object: newObject("web", one, minAvailable("1")),
			want:   []string{"FieldValueRequired " + amounts},
		},
		"negative": {
			why:    "a number of pods",
			object: newObject("web", maxUnavailable("-1")),
			want:   []string{"FieldValueInvalid spec.maxUnavailable"},
		},
		"above all": {
			why:    "a share",
			object: newObject("web", minAvailable("101%")),
			want:   []string{"FieldValueInvalid spec.minAvailable"},
		},
		"all": {"a share", newObject("web", minAvailable("100%")), nil, nil},
		"a fraction": {
			why:    "the reference cannot compute one",
			object: newObject("web", minAvailable("33.3%")),
			want:   []string{"FieldValueInvalid spec.minAvailable"},
		},
		"no number": {
			why:    "neither a number nor a share",
			object: newObject("web", minAvailable("many")),
			want:   []string{"FieldValueInvalid spec.minAvailable"},
		},
		"unknown operation": {
			why:    "the enum",
			object: edit(protect(pub.Delete, "DRAIN")),
			want:   []string{"FieldValueNotSupported spec.protectOperations[1]"},
		},
		"28: unknown in the annotation": {
			why: "stored objects of v1beta1 may have it", object: edit(annotated("kruise.io/pub-protect-operations", "BOGUS")),
		},
		"ignoring nothing": {
			why:    "it would ignore nothing",
			object: edit(func(b *object) { b.Spec.IgnoredPodSelector = &metav1.LabelSelector{} }),
			want:   []string{"FieldValueInvalid spec.ignoredPodSelector"},
		},
		"total in the annotation": {"valid", edit(annotated("pub.kruise.io/protect-total-replicas", "15")), nil, nil},
		"no total in the annotation": {
			why:    "an empty text is no number",
			object: edit(annotated("pub.kruise.io/protect-total-replicas", "")),
			want:   []string{"FieldValueInvalid metadata.annotations[pub.kruise.io/protect-total-replicas]"},
		},
		"two totals": {
			why:    "they must be equal",
			object: edit(func(b *object) { annotated("pub.kruise.io/protect-total-replicas", "15")(b); protectTotal(14)(b) }),
			want:   []string{"FieldValueInvalid metadata.annotations[pub.kruise.io/protect-total-replicas]"},
		},
		"29: the same selector": {
			why:    "two budgets would guard one pod",
			object: newObject("web", one),
			others: []*object{newObject("other", one)},
			want:   []string{"FieldValueInvalid spec.selector"},
		},
		"29: the same object": {
			why:    "an update is not in conflict with itself",
			object: newObject("web", one),
			others: []*object{newObject("web", one)},
		},
		"the same target": {
			why:    "two budgets would guard one pod",
			object: newObject("web", one, targeted("Deployment", "web")),
			others: []*object{newObject("other", one, targeted("Deployment", "web"))},
			want:   []string{"FieldValueInvalid spec.targetReference"},
		},
		"a selector beside a target": {
			why:    "they are not compared",
			object: newObject("web", one),
			others: []*object{newObject("other", one, targeted("Deployment", "web"))},
		},
		"everything wrong": {
			why: "all faults are collected",
			object: newObject("web", func(b *object) { b.Spec.Selector = nil }, protect("A"),
				annotated("pub.kruise.io/protect-total-replicas", "x")),
			want: []string{
				"FieldValueInvalid metadata.annotations[pub.kruise.io/protect-total-replicas]", "FieldValueRequired " + pods,
				"FieldValueRequired " + amounts, "FieldValueNotSupported spec.protectOperations[0]",
			},
		},
		"only the first conflict counts": {
			why:    "one is enough to be rejected",
			object: newObject("web", one),
			others: []*object{newObject("a", one), newObject("b", one)},
			want:   []string{"FieldValueInvalid spec.selector"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, brief(pub.Validate(c.object, c.others))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	old := newObject("web", maxUnavailable("1"))
	for name, c := range map[string]struct {
		why    string
		object *object
		want   int
	}{
		"amount": {"it may change", newObject("web", maxUnavailable("2")), 0},
		"selector": {
			"29: it cannot change", newObject("web", func(b *object) { b.Spec.Selector.MatchLabels["app"] = "other" }), 1,
		},
		"target": {"29: it cannot appear", newObject("web", targeted("Deployment", "web")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			faults := pub.ValidateUpdate(c.object, old)
			if len(faults) != c.want || c.want > 0 && faults[0].Field != "spec.selector, targetRef" {
				t.Errorf("%s: %v", c.why, faults)
			}
		})
	}
}

func TestValidateOlder(t *testing.T) {
	for name, c := range map[string]struct {
		why         string
		annotations map[string]string
		want        int
	}{
		"none": {"valid", nil, 0},
		"both": {
			"valid",
			map[string]string{
				"kruise.io/pub-protect-operations": "DELETE, EVICT,", "pub.kruise.io/protect-total-replicas": "15",
			},
			0,
		},
		"28: BOGUS": {
			"the conversion would leave it out", map[string]string{"kruise.io/pub-protect-operations": "DELETE,BOGUS"}, 1,
		},
		"28: no number": {
			"the conversion would leave it out", map[string]string{"pub.kruise.io/protect-total-replicas": "not-a-number"}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if faults := pub.ValidateOlder(c.annotations); len(faults) != c.want {
				t.Errorf("%s: %v", c.why, faults)
			}
		})
	}
}

// Every fault starts with what must be, and names no value of another user's object at length.
func TestTextsOfFaults(t *testing.T) {
	long := newObject("web", maxUnavailable(strings.Repeat("x", 300)))
	if faults := pub.Validate(long, nil); len(faults) != 1 || !strings.HasPrefix(faults[0].Detail, "must ") {
		t.Errorf("the faults are %v", faults)
	}
}

// The samples are valid, and nothing of them is left out.
func TestSample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "config", "samples", "podunavailablebudget.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o := decode(t, text)
	_, notes := pub.Read(o)
	if faults := pub.Validate(o, nil); len(faults) > 0 || len(notes) > 0 {
		t.Errorf("faults %v, notes %v", faults, notes)
	}
}
