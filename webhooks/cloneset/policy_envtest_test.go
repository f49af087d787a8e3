//go:build envtest

package cloneset_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
)

// reviewAll expects refusals by one reviewer, each for its reason.
func reviewAll(t *testing.T, g *reviewtest.Ground, reviewer string) {
	// The API server asks no reviewer about this, because of the scale subresource.
	kind().Creations(t, g, "should be a non-negative integer", map[string]struct{ Version, Patch, Want string }{"negative replicas": {"v1beta1", `{"replicas":-1}`, "spec.replicas: "}})
	kind().Creations(t, g, reviewer, map[string]struct{ Version, Patch, Want string }{
		"nothing is set":            {"v1beta1", ``, ""},
		"nothing is set before":     {"v1alpha1", ``, ""},
		"no replicas":               {"v1alpha1", `{"replicas":0}`, ""},
		"a type of the other":       {"v1beta1", `{"updateStrategy":{"type":"ReCreate"}}`, "spec.updateStrategy.type"},
		"an unknown type":           {"v1alpha1", `{"updateStrategy":{"type":"RollingUpdate"}}`, "spec.updateStrategy.type"},
		"an empty type":             {"v1beta1", `{"updateStrategy":{"type":"","rollingUpdate":{"podUpdatePolicy":""}}}`, ""},
		"OnDelete":                  {"v1beta1", `{"updateStrategy":{"type":"OnDelete"}}`, ""},
		"OnDelete in v1alpha1":      {"v1alpha1", `{"updateStrategy":{"type":"OnDelete"}}`, "spec.updateStrategy.type"},
		"an unknown policy":         {"v1beta1", `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"Gently"}}}`, "podUpdatePolicy"},
		"a known policy":            {"v1beta1", `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceOnly","partition":1}}}`, ""},
		"the other version's block": {"v1alpha1", `{"updateStrategy":{"type":"InPlaceOnly","partition":1}}`, ""},
	})
	kind().Updates(t, g, reviewtest.Updates{Reviewer: reviewer, Patch: `{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}}`, Cases: map[string]reviewtest.Update{
		"another label":      {Field: "selector", Value: map[string]any{"matchLabels": map[string]any{"app": "b"}}, Want: "spec: "},
		"another expression": {Field: "selector", Value: map[string]any{"matchLabels": map[string]any{"app": "a"}}, Want: "spec: "},
		"empty values": {Field: "selector", Value: map[string]any{
			"matchLabels":      map[string]any{"app": "a"},
			"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists", "values": []any{}}},
		}},
	}})
}
