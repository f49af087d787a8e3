//go:build envtest

package cloneset_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
)

// testPolicy has the webhooks judge some sets, then takes them away and installs the policy, which must judge alike.
func testPolicy(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	t.Run("Webhook", func(t *testing.T) { judgeAll(t, g, namespace, "denied the request") })
	if out, err := g.Kubectl(t.Context(), "apply", "-f", filepath.Join("..", "..", "config", "webhook", "cloneset-policy.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.Withdraw(t)
	reviewtest.Until(t, "the API server does not mind the policy alone", func(ctx context.Context) error {
		plain := newSet(t, "v1beta1", namespace, "")
		if err := g.Client.Create(ctx, plain, client.DryRunAll); err != nil {
			return err
		}
		if reviewtest.Field(plain, "spec", "revisionHistoryLimit") != nil {
			return errors.New("there are defaults")
		}
		return reviewtest.Says(g.Client.Create(ctx, newSet(t, "v1beta1", namespace, `{"updateStrategy":{"type":"x"}}`), client.DryRunAll), "kruisekit-cloneset", "spec.updateStrategy.type")
	})
	t.Run("Policy", func(t *testing.T) { judgeAll(t, g, namespace, "kruisekit-cloneset") })
}

// judgeAll expects refusals by the judge, each for its reason.
func judgeAll(t *testing.T, g *reviewtest.Ground, namespace, judge string) {
	create := map[string]struct{ version, patch, want string }{
		"nothing is set":            {"v1beta1", ``, ""},
		"nothing is set before":     {"v1alpha1", ``, ""},
		"negative replicas":         {"v1beta1", `{"replicas":-1}`, "spec.replicas: "},
		"no replicas":               {"v1alpha1", `{"replicas":0}`, ""},
		"a type of the other":       {"v1beta1", `{"updateStrategy":{"type":"ReCreate"}}`, "spec.updateStrategy.type"},
		"an unknown type":           {"v1alpha1", `{"updateStrategy":{"type":"RollingUpdate"}}`, "spec.updateStrategy.type"},
		"an empty type":             {"v1beta1", `{"updateStrategy":{"type":"","rollingUpdate":{"podUpdatePolicy":""}}}`, ""},
		"OnDelete":                  {"v1beta1", `{"updateStrategy":{"type":"OnDelete"}}`, ""},
		"OnDelete in v1alpha1":      {"v1alpha1", `{"updateStrategy":{"type":"OnDelete"}}`, "spec.updateStrategy.type"},
		"an unknown policy":         {"v1beta1", `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"Gently"}}}`, "podUpdatePolicy"},
		"a known policy":            {"v1beta1", `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceOnly","partition":1}}}`, ""},
		"the other version's block": {"v1alpha1", `{"updateStrategy":{"type":"InPlaceOnly","partition":1}}`, ""},
	}
	for name, c := range create {
		t.Run(name, func(t *testing.T) {
			judge := judge
			if name == "negative replicas" {
				judge = "should be a non-negative integer" // the API server does not ask anybody, because of the scale subresource
			}
			if err := reviewtest.Says(g.Client.Create(t.Context(), newSet(t, c.version, namespace, c.patch), client.DryRunAll), judge, c.want); err != nil {
				t.Error(err)
			}
		})
	}
	const full = `{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}}`
	update := map[string]struct {
		change map[string]any
		want   string
	}{
		"another label":      {map[string]any{"matchLabels": map[string]any{"app": "b"}}, "spec: "},
		"another expression": {map[string]any{"matchLabels": map[string]any{"app": "a"}}, "spec: "},
		"empty values": {map[string]any{
			"matchLabels":      map[string]any{"app": "a"},
			"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists", "values": []any{}}},
		}, ""},
	}
	for name, c := range update {
		t.Run(name, func(t *testing.T) {
			set := newSet(t, "v1beta1", namespace, full)
			if err := g.Client.Create(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			set.Object["spec"].(map[string]any)["selector"] = c.change
			if err := reviewtest.Says(g.Client.Update(t.Context(), set), judge, c.want); err != nil {
				t.Error(err)
			}
		})
	}
}
