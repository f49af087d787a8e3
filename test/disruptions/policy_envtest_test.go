//go:build envtest

package disruptions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
)

// testPolicy: the policy decides as package pub does on the same budgets, and rejects no change for a fault that is
// stored.
func testPolicy(t *testing.T, g *ground) {
	const selector, amount = `"selector":{"matchLabels":{"app":"policy"}}`, `"maxUnavailable":1`
	const target = `"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}`
	stored := g.stored("stored", `{`+selector+`,`+target+`,"maxUnavailable":"101%"}`)
	if out, err := g.Kubectl(t.Context(), "apply", "-f",
		"../../config/webhook/podunavailablebudget-policy.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.until("the policy does not decide", func(ctx context.Context) error {
		if err := g.Client.Create(ctx, parsed(t, "probe", `{}`), client.DryRunAll); err == nil {
			return errors.New("an empty budget is admitted")
		}
		return nil
	})
	for _, spec := range []string{
		selector + `,` + amount, target + `,` + amount, selector + `,"minAvailable":"50%"`, selector + `,"minAvailable":100`,
		selector + `,"maxUnavailable":"0%"`,
		selector + `,"maxUnavailable":"100%"`, selector + `,` + amount + `,"ignoredPodSelector":{"matchLabels":{"a":"b"}}`,
		`"selector":{"matchExpressions":[{"key":"a","operator":"Exists"}]},` + amount,
		amount, selector, selector + `,` + target + `,` + amount, selector + `,` + amount + `,"minAvailable":1`,
		`"selector":{},` + amount,
		`"selector":{"matchLabels":{}},` + amount, `"targetRef":{},` + amount,
		`"targetRef":{"apiVersion":"apps/v1","kind":"Deployment"},` + amount,
		`"targetRef":{"apiVersion":"a/b/c","kind":"Deployment","name":"web"},` + amount, selector + `,"maxUnavailable":-1`,
		selector + `,"maxUnavailable":"101%"`,
		selector + `,"minAvailable":"-1%"`, selector + `,"minAvailable":"many"`, selector + `,"minAvailable":"5"`,
		selector + `,"minAvailable":""`,
		selector + `,` + amount + `,"ignoredPodSelector":{}`,
	} {
		b := parsed(t, "case", `{`+spec+`}`)
		faults := pub.Validate(b, nil)
		err := g.Client.Create(t.Context(), b, client.DryRunAll)
		if (err != nil) != (len(faults) > 0) ||
			err != nil && !strings.Contains(err.Error(), "kruisekit-podunavailablebudget") {
			t.Errorf("%s: the webhook finds %v, the policy %v", spec, faults, err)
		}
	}
	for change, want := range map[string]bool{
		`{"metadata":{"labels":{"a":"b"}}}`:  true,
		`{"spec":{"targetRef":null}}`:        false,
		`{"spec":{"maxUnavailable":"102%"}}`: false,
		`{"spec":{"maxUnavailable":1}}`:      true,
	} {
		err := g.Client.Patch(t.Context(), stored.DeepCopy(),
			client.RawPatch("application/merge-patch+json", []byte(change)), client.DryRunAll)
		if (err == nil) != want {
			t.Errorf("%s of a budget with faults: %v", change, err)
		}
	}
}

func parsed(t *testing.T, name, spec string) *policyv1beta1.PodUnavailableBudget {
	t.Helper()
	b := &policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := json.Unmarshal([]byte(spec), &b.Spec); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", spec, err))
	}
	return b
}

// stored stores a budget before anything validates it.
func (g *ground) stored(name, spec string) *policyv1beta1.PodUnavailableBudget {
	g.Helper()
	b := parsed(g.T, name, spec)
	if err := g.Client.Create(g.Context(), b); err != nil {
		g.Fatal(err)
	}
	return b
}
