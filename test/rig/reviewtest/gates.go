package reviewtest

import (
	"cmp"
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Closed is a kind whose gate is off.
type Closed struct {
	Kind Kind
	Code int32
	Text string

	stays, leaves *unstructured.Unstructured
}

// Store creates objects while the gate is on.
func (c *Closed) Store(t *testing.T, g *Ground) {
	t.Helper()
	for _, o := range []**unstructured.Unstructured{&c.stays, &c.leaves} {
		*o = c.Kind.New(t, c.Kind.Latest(), c.Kind.Namespace(t, g), "")
		(*o).SetFinalizers([]string{"example.com/hold"})
		if err := g.Client.Create(t.Context(), *o); err != nil {
			t.Fatal(err)
		}
	}
}

// Review expects that creations and updates are rejected, while an object that is being deleted can still leave.
func (c *Closed) Review(t *testing.T, g *Ground) {
	for _, version := range c.Kind.versions() {
		err := g.Client.Create(t.Context(), c.Kind.New(t, version, c.stays.GetNamespace(), ""), client.DryRunAll)
		if Refused(t, err, c.Code); err == nil || !strings.Contains(err.Error(), c.Text) {
			t.Errorf("%s: want %q, got %v", version, c.Text, err)
		}
	}
	touch(c.stays)
	Refused(t, g.Client.Update(t.Context(), c.stays), c.Code)
	g.Leave(t, c.stays)
	g.Leave(t, c.leaves)
}

// PolicyName is that of the policy, in the cluster.
func (k Kind) PolicyName() string {
	return "kruisekit-" + cmp.Or(k.Policy, k.lower())
}

// ApplyPolicies installs policies. API servers apply them some time later.
func ApplyPolicies(t *testing.T, g *Ground, all ...Kind) {
	t.Helper()
	for _, k := range all {
		file := path(t, "config", "webhook", strings.TrimPrefix(k.PolicyName(), "kruisekit-")+"-policy.yaml")
		if out, err := g.Kubectl(t.Context(), "apply", "-f", file); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// Rejects is an error unless the policy rejects a bad object.
func (k Kind) Rejects(ctx context.Context, t testing.TB, g *Ground) error {
	err := g.Client.Create(ctx, k.New(t, k.Latest(), "default", k.Bad), client.DryRunAll)
	return Says(err, k.PolicyName(), k.PolicyName())
}
