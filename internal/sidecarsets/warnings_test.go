package sidecarsets_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/sidecarsets"
)

func TestSidecarSetWarnings(t *testing.T) {
	set := newSidecarSet(t,
		`{"updateStrategy":{"type":"Odd"},"patchPodMetadata":[{"patchPolicy":"Odd"},{"patchPolicy":"Retain"}]}`)
	set.Annotations = map[string]string{v1beta1.SidecarSetCanaryAnnotation: "true"}
	if got := sidecarsets.Warnings(set); len(got) != 3 {
		t.Errorf("want three, got %q", got)
	}
	for typed, want := range map[string][]string{
		"Odd": {
			`spec.updateStrategy.type: "Odd" is unknown, and works as RollingUpdate`,
			"spec.updateStrategy.partition: Invalid value: -1: must not be negative",
			`spec.updateStrategy.maxUnavailable: Invalid value: "some": must be a number, or a percentage as 20%`,
		},
		"RollingUpdate": nil, "NotUpdate": nil,
	} {
		if diff := cmp.Diff(want, sidecarsets.Warnings(newSidecarSet(t,
			`{"updateStrategy":{"type":"`+typed+`","partition":-1,"maxUnavailable":"some"}}`))); diff != "" {
			t.Errorf("what is refused of RollingUpdate, %s bears (-want +got):\n%s", typed, diff)
		}
	}
	for _, zero := range []string{`0`, `"0%"`} {
		if got := sidecarsets.Warnings(newSidecarSet(t,
			`{"updateStrategy":{"maxUnavailable":`+zero+`}}`)); len(got) != 1 {
			t.Errorf("%s: no pod would ever be updated: %q", zero, got)
		}
	}
	if got := sidecarsets.Warnings(newSidecarSet(t,
		`{"containers":[{"name":"a","image":"e:1","upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"e:1"}}]}`)); len(
		got) != 1 {
		t.Errorf("the old container would work for ever: %q", got)
	}
	if got := sidecarsets.Warnings(newSidecarSet(t,
		`{"patchPodMetadata":[{"annotations":{"a":"b","kruise.io/sidecarset-injected-list":"c"}}]}`)); len(got) != 1 {
		t.Errorf("what pods record is not written: %q", got)
	}
	for _, container := range []string{`"containers":[`, `"initContainers":[`} {
		got := sidecarsets.Warnings(newSidecarSet(t,
			`{`+container+`{"name":"a","upgradeStrategy":{"upgradeType":"HotUpgarde"}}]}`))
		if len(got) != 1 || !strings.Contains(got[0],
			`ontainers[0].upgradeStrategy.upgradeType: "HotUpgarde" is unknown, and works as ColdUpgrade`) {
			t.Errorf("it is never two: %q", got)
		}
	}
	if got := sidecarsets.Warnings(newSidecarSet(t,
		`{"updateStrategy":{"maxUnavailable":"1%"},"containers":[{"name":"a","upgradeStrategy":{"upgradeType":"ColdUpgrade"}}]}`)); got !=
		nil {
		t.Errorf("there is nothing to warn of: %q", got)
	}
}

// TestSidecarSetSpared: sets for namespaces whose pods are never sent to the webhook.
func TestSidecarSetSpared(t *testing.T) {
	sent := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist},
		{
			Key:      "kubernetes.io/metadata.name",
			Operator: metav1.LabelSelectorOpNotIn,
			Values:   []string{"kruise-system", "kube-system"},
		},
	}}
	in := func(names string) string {
		return `{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":[` +
			names + `]}]}}`
	}
	cases := map[string]struct{ why, patch, want string }{
		"all namespaces": {"the others are meant", `{}`, ""},
		"kube-system": {
			"no pod gets the containers", `{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}}}`,
			"spec.namespaceSelector: selects namespaces whose pods get no containers: kube-system",
		},
		"both": {
			"each one is named", in(`"kube-system","kruise-system"`),
			"spec.namespaceSelector: selects namespaces whose pods get no containers: kruise-system, kube-system",
		},
		"among others": {
			"it is named on purpose", in(`"shop","kube-system"`),
			"spec.namespaceSelector: selects namespaces whose pods get no containers: kube-system",
		},
		"others": {"their pods are sent", in(`"shop"`), ""},
		"the label": {
			"no namespace with it is sent", `{"namespaceSelector":{"matchLabels":{"control-plane":"x"}}}`,
			"spec.namespaceSelector: selects only namespaces whose pods get no containers",
		},
		"another label": {
			"a namespace may lack control-plane", `{"namespaceSelector":{"matchLabels":{"team":"x"}}}`, "",
		},
		"a selector that is invalid": {
			"that is a fault of its own", `{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Odd"}]}}`, "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sidecarsets.Spared(newSidecarSet(t, c.patch), sent); got != c.want {
				t.Errorf("%s: want %q, got %q", c.why, c.want, got)
			}
		})
	}
}

// TestFailurePolicy: a set that its owner means to allow to be missing, and does not.
func TestFailurePolicy(t *testing.T) {
	for value, want := range map[string][]string{
		"": nil, "Fail": nil, "Ignore": nil,
		"ignore": {`metadata.annotations[kruisekit.dev/injection-failure-policy]: "ignore" is unknown, and works as Fail`},
	} {
		set := newSidecarSet(t, `{}`)
		set.Annotations = map[string]string{v1beta1.SidecarSetInjectionFailurePolicyAnnotation: value}
		if diff := cmp.Diff(want, sidecarsets.Warnings(set)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
	}
}

// TestNearlyEveryPod: pods that a user forgot to exclude are rarely meant.
func TestNearlyEveryPod(t *testing.T) {
	const not, without = `{"key":"a","operator":"NotIn","values":["b"]}`, `{"key":"c","operator":"DoesNotExist"}`
	selector := func(labels string, expressions ...string) string {
		return `"selector":{"matchLabels":` + labels + `,"matchExpressions":[` + strings.Join(expressions, ",") + `]}`
	}
	for name, c := range map[string]struct {
		why, patch string
		warned     bool
	}{
		"labels":         {"they are asked for", `{}`, false},
		"labels and not": {"they are asked for", `{` + selector(`{"d":"e"}`, not) + `}`, false},
		"not":            {"nothing is asked for", `{` + selector("null", not, without) + `}`, true},
		"a key and not":  {"it is asked for", `{` + selector("null", not, `{"key":"d","operator":"Exists"}`) + `}`, false},
		"some namespaces": {
			"they are asked for", `{` + selector("null", not) + `,"namespaceSelector":{"matchLabels":{"d":"e"}}}`, false,
		},
		"other namespaces": {
			"nothing is asked for", `{` + selector("null", not) + `,"namespaceSelector":{"matchExpressions":[` + without + `]}}`,
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.warned {
				want = []string{"spec.selector: says only what pods are not, and selects nearly every pod"}
			}
			if diff := cmp.Diff(want, sidecarsets.Warnings(newSidecarSet(t, c.patch))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
