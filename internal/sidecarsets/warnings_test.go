package sidecarsets_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/sidecarsets"
)

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
