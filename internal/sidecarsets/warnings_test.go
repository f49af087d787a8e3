package sidecarsets_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/sidecarsets"
)

func TestSidecarSetWarnings(t *testing.T) {
	for patch, want := range map[string][]string{
		`{"updateStrategy":{"type":"Odd","partition":-1}}`: {
			`spec.updateStrategy.type: "Odd" is unknown, and works as RollingUpdate`,
		},
		`{"patchPodMetadata":[{"patchPolicy":"Retain"},{"patchPolicy":"Odd"}]}`: {
			`spec.patchPodMetadata[1].patchPolicy: "Odd" is unknown, and writes nothing`,
		},
		`{"containers":[{"name":"a","upgradeStrategy":{"upgradeType":"HotUpgarde"}}]}`: {
			`spec.containers[0].upgradeStrategy.upgradeType: "HotUpgarde" is unknown, and works as ColdUpgrade`,
		},
		`{"initContainers":[{"name":"a","upgradeStrategy":{"upgradeType":"HotUpgarde"}}]}`: {
			`spec.initContainers[0].upgradeStrategy.upgradeType: "HotUpgarde" is unknown, and works as ColdUpgrade`,
		},
		`{"updateStrategy":{"type":"NotUpdate"},"containers":[{"name":"a","upgradeStrategy":{"upgradeType":"ColdUpgrade"}}]}`: nil,
	} {
		if diff := cmp.Diff(want, sidecarsets.Warnings(newSidecarSet(t, patch))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", patch, diff)
		}
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
