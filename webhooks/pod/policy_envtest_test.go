//go:build envtest

package pod_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
)

const gatedOther = `{metadata: {name: p, ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: c, uid: u, controller: true}]}, spec: {readinessGates: [{conditionType: other}], containers: [{name: main, image: m}]}}`

// The policy does what the step does, without a webhook: each pod comes out the same.
func testPolicy(t *testing.T, g *ground) {
	g.Needs(t, 36, "MutatingAdmissionPolicy")
	pods := []string{owned, plain, gated, gatedOther}
	namespace := g.Namespace(t)
	outcome := func() [][]string {
		var all [][]string
		for _, text := range pods {
			p := newPod(t, namespace, text)
			if err := g.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			all = append(all, describeTyped(t, p))
		}
		return all
	}
	g.have(t, concerned{Owned: true})
	want := outcome()
	g.config.Webhooks = []admissionregistrationv1.MutatingWebhook{}
	if err := g.Client.Update(t.Context(), g.config); err != nil {
		t.Fatal(err)
	}
	is := func(text string, gates ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			p := newPod(t, namespace, text)
			if err := g.Client.Create(ctx, p, client.DryRunAll); err != nil {
				return err
			}
			if got := describeTyped(t, p); !slices.Equal(got[1:], gates) {
				return fmt.Errorf("it has %q", got)
			}
			return nil
		}
	}
	g.until(t, "the webhook is still asked", is(owned))
	if out, err := g.Kubectl(t.Context(), "apply", "-f", "../../config/webhook/podreadiness-policy.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.until(t, "the policy does nothing", is(owned, "gate KruisePodReady"))
	same(t, "by the policy", want, outcome())

	// For all pods.
	binding := stored.Untyped(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyBinding"))
	binding.SetName("all")
	binding.Object["spec"] = map[string]any{"policyName": "kruisekit-pod-readiness-all"}
	if err := g.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	g.until(t, "the policy for all does nothing", is(plain, "gate KruisePodReady"))
}
