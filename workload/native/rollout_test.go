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
		text   string
		kind   native.Kind
		want   native.Rollout
		faults []string
	}{
		"empty: all has a default": {text: `{}`},
		"all: every field is read": {
			text: `{"class":"blue","podUpdatePolicy":"InPlaceOnly","maxUnavailable":"25%","partition":2,"paused":true,` +
				`"minReadySeconds":0,"gracePeriodSeconds":7,"resources":"InPlace"}`,
			want: native.Rollout{
				Class: "blue", PodUpdatePolicy: native.InPlaceOnly, MaxUnavailable: amount("25%"), Partition: 2, Paused: true,
				MinReadySeconds: ptr.To(int32(0)), GracePeriodSeconds: 7, Resources: native.ResourcesInPlace,
			},
		},
		"ordered: is for StatefulSets": {
			text: `{"maxUnavailable":"ordered"}`,
			want: native.Rollout{MaxUnavailable: amount("ordered")},
		},
		"no object: a word is no object": {text: `"ReCreate"`, faults: []string{"must be a JSON object"}},
		"unknown: a typing error must not be lost": {
			text: `{"maxUnavailible":1}`,
			faults: []string{
				`must be a JSON object such as {}, enabled or disabled: json: unknown field "maxUnavailible"`,
			},
		},
		"types: the field is named": {
			text:   `{"paused":"yes"}`,
			faults: []string{"cannot unmarshal string into Go struct field Rollout.paused of type bool"},
		},
		"two objects: the second one would be lost": {text: `{}{}`, faults: []string{"must be a JSON object"}},
		"policy: there are three": {
			text: `{"podUpdatePolicy":"InPlace"}`,
			faults: []string{
				`rollout.podUpdatePolicy: Unsupported value: "InPlace": supported values: "InPlaceIfPossible", "InPlaceOnly", "ReCreate"`,
			},
		},
		"resources: there are two": {
			text:   `{"resources":"Replaced"}`,
			faults: []string{"rollout.resources: Unsupported value"},
		},
		"negative: no number is": {
			text:   `{"partition":-1,"gracePeriodSeconds":-1,"minReadySeconds":-1}`,
			faults: []string{"rollout.gracePeriodSeconds", "rollout.minReadySeconds", "rollout.partition"},
		},
		"none: no update would ever begin": {
			text:   `{"maxUnavailable":0}`,
			faults: []string{"rollout.maxUnavailable: Invalid value: \"0\": must be greater than 0"},
		},
		"a word: no other word is known": {
			text:   `{"maxUnavailable":"one"}`,
			faults: []string{"must be a whole number, a percentage or ordered"},
		},
		"of daemons: nodes have no order": {
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
				t.Fatalf("%v", faults)
			}
			for k, fault := range faults {
				if !strings.Contains(fault.Error(), c.faults[k]) {
					t.Errorf("got %q, want %q", fault.Error(), c.faults[k])
				}
			}
			if d := cmp.Diff(c.want, got); d != "" && len(c.faults) == 0 {
				t.Errorf("%s", d)
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
		set       map[string]string
		namespace metav1.Object
		want      string
		ok        bool
	}{
		"nothing: a set that asks for nothing is left alone":  {namespace: &metav1.ObjectMeta{}},
		"no namespace: an unknown namespace asks for nothing": {},
		"label: a namespace asks for its sets":                {namespace: labelled, want: "{}", ok: true},
		"label of another value: the label takes one word": {
			namespace: &metav1.ObjectMeta{Labels: map[string]string{native.RolloutKey: "true"}},
		},
		"annotation wins: the set says more": {
			set:       map[string]string{native.RolloutKey: `{"paused":true}`},
			namespace: labelled, want: `{"paused":true}`, ok: true,
		},
		"enabled: a word for the defaults": {
			set: map[string]string{native.RolloutKey: native.Enabled}, want: "{}", ok: true,
		},
		"disabled: a set opts out": {set: map[string]string{native.RolloutKey: native.Disabled}, namespace: labelled},
		"empty: is invalid, and not disabled": {
			set: map[string]string{native.RolloutKey: ""}, namespace: labelled, ok: true,
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			text, ok := native.Request(&metav1.ObjectMeta{Annotations: test.set}, test.namespace)
			if text != test.want || ok != test.ok {
				t.Errorf("got %q, %t", text, ok)
			}
		})
	}
}
