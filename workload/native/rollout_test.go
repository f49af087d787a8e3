package native_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/workload/native"
)

func TestParse(t *testing.T) {
	amount := func(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }
	cases := map[string]struct {
		why    string
		text   string
		kind   native.Kind
		want   native.Rollout
		faults []string
	}{
		"empty": {why: "all has a default", text: `{}`},
		"all": {
			why: "every field is read",
			text: `{"class":"blue","podUpdatePolicy":"InPlaceOnly","maxUnavailable":"25%","partition":2,"paused":true,` +
				`"minReadySeconds":0,"gracePeriodSeconds":7,"resources":"InPlace"}`,
			want: native.Rollout{
				Class: "blue", PodUpdatePolicy: native.InPlaceOnly, MaxUnavailable: amount("25%"), Partition: 2, Paused: true,
				MinReadySeconds: ptr.To(int32(0)), GracePeriodSeconds: 7, Resources: native.ResourcesInPlace,
			},
		},
		"null": {why: "is as good as missing", text: `{"maxUnavailable":null}`},
		"ordered": {
			why:  "is for StatefulSets",
			text: `{"maxUnavailable":"ordered"}`,
			want: native.Rollout{MaxUnavailable: amount("ordered")},
		},
		"no text": {
			why:    "an empty annotation asks for nothing",
			text:   ``,
			faults: []string{"rollout: Invalid value: \"\": must be a JSON object such as {}, enabled or disabled"},
		},
		"no object": {why: "a word is no object", text: `"ReCreate"`, faults: []string{"must be a JSON object"}},
		"a null":    {why: "nor is null", text: `null`, faults: []string{"must be a JSON object"}},
		"a list":    {why: "nor is a list", text: `[]`, faults: []string{"must be a JSON object"}},
		"unknown": {
			why:  "a typing error must not be lost",
			text: `{"maxUnavailible":1}`,
			faults: []string{
				`must be a JSON object such as {}, enabled or disabled: json: unknown field "maxUnavailible"`,
			},
		},
		"types": {
			why:    "the field is named",
			text:   `{"paused":"yes"}`,
			faults: []string{"cannot unmarshal string into Go struct field Rollout.paused of type bool"},
		},
		"two objects": {why: "the second one would be lost", text: `{}{}`, faults: []string{"must be a JSON object"}},
		"policy": {
			why:  "there are three",
			text: `{"podUpdatePolicy":"InPlace"}`,
			faults: []string{
				`rollout.podUpdatePolicy: Unsupported value: "InPlace": supported values: "InPlaceIfPossible", "InPlaceOnly", "ReCreate"`,
			},
		},
		"resources": {
			why:    "there are two",
			text:   `{"resources":"Replaced"}`,
			faults: []string{"rollout.resources: Unsupported value"},
		},
		"negative": {
			why:    "no number is",
			text:   `{"partition":-1,"gracePeriodSeconds":-1,"minReadySeconds":-1}`,
			faults: []string{"rollout.gracePeriodSeconds", "rollout.minReadySeconds", "rollout.partition"},
		},
		"none": {
			why:    "no update would ever begin",
			text:   `{"maxUnavailable":0}`,
			faults: []string{"rollout.maxUnavailable: Invalid value: \"0\": must be greater than 0"},
		},
		"too many": {
			why:    "no more than all",
			text:   `{"maxUnavailable":"101%"}`,
			faults: []string{"rollout.maxUnavailable"},
		},
		"a word": {
			why:    "no other word is known",
			text:   `{"maxUnavailable":"one"}`,
			faults: []string{"must be a whole number, a percentage or ordered"},
		},
		"of daemons": {
			why:    "nodes have no order",
			text:   `{"maxUnavailable":"ordered"}`,
			kind:   native.KindDaemonSet,
			faults: []string{"must be for a StatefulSet; this is a DaemonSet"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.kind == "" {
				c.kind = native.KindStatefulSet
			}
			got, faults := native.Parse(c.text, c.kind, field.NewPath("rollout"))
			if len(faults) != len(c.faults) {
				t.Fatalf("%s: %v", c.why, faults)
			}
			for k, fault := range faults {
				if !strings.Contains(fault.Error(), c.faults[k]) {
					t.Errorf("%s: got %q, want %q", c.why, fault.Error(), c.faults[k])
				}
			}
			if d := cmp.Diff(c.want, got); d != "" && len(c.faults) == 0 {
				t.Errorf("%s: %s", c.why, d)
			}
		})
	}
}

// FuzzParse: whatever an annotation has, Parse returns, and what it accepts keeps its promises.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{}`, `{"maxUnavailable":"10%","partition":3}`, `{"maxUnavailable":{}}`, `{"a":[`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, faults := native.Parse(text, native.KindStatefulSet, nil)
		if len(faults) == 0 && (r.Partition < 0 || r.GracePeriodSeconds < 0) {
			t.Errorf("%q: %+v", text, r)
		}
		for _, fault := range faults {
			if fault.Error() == "" {
				t.Errorf("%q: a fault without a text", text)
			}
		}
	})
}

func TestRequest(t *testing.T) {
	labelled := &metav1.ObjectMeta{Labels: map[string]string{native.RolloutKey: native.Enabled}}
	cases := map[string]struct {
		why       string
		set       map[string]string
		namespace metav1.Object
		want      string
		ok        bool
	}{
		"nothing":      {why: "a set that asks for nothing is left alone", namespace: &metav1.ObjectMeta{}},
		"no namespace": {why: "an unknown namespace asks for nothing"},
		"label":        {why: "a namespace asks for its sets", namespace: labelled, want: "{}", ok: true},
		"label of another value": {
			why:       "the label takes one word",
			namespace: &metav1.ObjectMeta{Labels: map[string]string{native.RolloutKey: "true"}},
		},
		"annotation wins": {
			why: "the set says more", set: map[string]string{native.RolloutKey: `{"paused":true}`},
			namespace: labelled, want: `{"paused":true}`, ok: true,
		},
		"enabled": {
			why: "a word for the defaults", set: map[string]string{native.RolloutKey: native.Enabled}, want: "{}", ok: true,
		},
		"disabled": {
			why: "a set opts out", set: map[string]string{native.RolloutKey: native.Disabled}, namespace: labelled,
		},
		"empty": {
			why: "is invalid, and not disabled", set: map[string]string{native.RolloutKey: ""}, namespace: labelled, ok: true,
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			text, ok := native.Request(&metav1.ObjectMeta{Annotations: test.set}, test.namespace)
			if text != test.want || ok != test.ok {
				t.Errorf("%s: got %q, %t", test.why, text, ok)
			}
		})
	}
}
