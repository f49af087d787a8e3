package reviewtest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
)

// Kind is a kind, for what an API server must show of each.
type Kind struct {
	// Name is the kind in lower case. The files of the kind have the name: <name>s.yaml, <name>-policy.yaml.
	Name string
	// New returns an object that is valid, of a version, whose spec is changed by a merge patch.
	New func(t *testing.T, version, namespace, patch string) *unstructured.Unstructured
	// Versions of the kind, the older one first; v1alpha1 and v1beta1 if nil.
	Versions []string
}

func (k Kind) versions() []string {
	if k.Versions == nil {
		return []string{"v1alpha1", "v1beta1"}
	}
	return k.Versions
}

func (k Kind) policy() string { return "kruisekit-" + k.Name }

// Manifests applies the manifests of the reference's API unchanged, and once more as an update of something else.
func (k Kind) Manifests(t *testing.T, g *Ground) {
	for _, version := range k.versions() {
		namespace := g.Namespace(t)
		for _, o := range Manifests(t, version, k.Name+"s.yaml") {
			o.SetNamespace(namespace)
			if err := g.Client.Create(t.Context(), o, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s, %s: %v", version, o.GetName(), err)
			}
			o.SetLabels(map[string]string{"touched": "true"})
			if err := g.Client.Update(t.Context(), o); err != nil {
				t.Errorf("%s, %s: update: %v", version, o.GetName(), err)
			}
		}
	}
}

// Mistakes makes mistakes in manifests. With the webhooks in front, the schema still names what is wrong.
func (k Kind) Mistakes(t *testing.T, g *Ground) {
	namespace := g.Namespace(t)
	for _, m := range Mistakes(t, k.Name+"s.yaml") {
		for _, version := range k.versions() {
			if m.Version != "" && m.Version != version || strings.HasPrefix(m.Refusal, "status.") { // a creation writes no status
				continue
			}
			t.Run(m.Why+"/"+version, func(t *testing.T) {
				one := m
				one.Version = version
				k.mistake(t, g, one, namespace)
			})
		}
	}
}

func (k Kind) mistake(t *testing.T, g *Ground, m Mistake, namespace string) {
	t.Helper()
	for _, o := range Manifests(t, m.Version, k.Name+"s.yaml") {
		if o.GetName() != m.Manifest {
			continue
		}
		plaintest.Merge(o.Object, m.Patch)
		o.SetNamespace(namespace)
		err := g.Client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
		if err == nil || !strings.Contains(err.Error(), m.Refusal) {
			t.Errorf("want %q, got %v", m.Refusal, err)
		}
	}
}

// Recorded creates what the reference has defaulted: there is nothing left to add to some fields of the spec, or to all of it where none is
// named. So an object that is taken over differs from its revisions in nothing.
func (k Kind) Recorded(t *testing.T, g *Ground, fields ...string) {
	namespace := g.Namespace(t)
	for _, version := range k.versions() {
		for _, recorded := range Recorded(t, "1-created", k.Name+"s."+version+".yaml") {
			o := k.New(t, version, namespace, "")
			o.Object["spec"] = recorded.DeepCopy().Object["spec"]
			if err := g.Client.Create(t.Context(), o); err != nil {
				t.Error(err)
			}
			for _, path := range paths(fields) {
				if diff := cmp.Diff(plaintest.Encode(t, Field(recorded, path...)), plaintest.Encode(t, Field(o, path...))); diff != "" {
					t.Errorf("%s, %s, %v (-recorded +now):\n%s", version, recorded.GetName(), path, diff)
				}
			}
		}
	}
}

// Off expects a webhook that is off, which the setup serves, to refuse creations and updates with a code, while an object that is being deleted can
// still leave.
func (k Kind) Off(t *testing.T, g *Ground, setup Setup, code int32) {
	namespace, versions := g.Namespace(t), k.versions()
	stored := k.New(t, versions[len(versions)-1], namespace, `{"metadata":{"finalizers":["example.com/hold"]}}`)
	if err := g.Client.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	g.Serve(t, setup)
	for _, version := range versions {
		Refused(t, g.Client.Create(t.Context(), k.New(t, version, namespace, "")), code)
	}
	stored.SetLabels(map[string]string{"a": "b"})
	Refused(t, g.Client.Update(t.Context(), stored), code)
	g.Leave(t, stored)
}

func paths(fields []string) [][]string {
	if len(fields) == 0 {
		return [][]string{{"spec"}}
	}
	var all [][]string
	for _, field := range fields {
		all = append(all, []string{"spec", field})
	}
	return all
}

// Keeps changes a number in the spec of an object of the newer version through the older one, as old clients do: nothing else changes.
func (k Kind) Keeps(t *testing.T, g *Ground, patch, number string) {
	namespace := g.Namespace(t)
	o := k.New(t, "v1beta1", namespace, patch)
	if err := g.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	before := o.DeepCopy()
	older := k.New(t, "v1alpha1", namespace, "")
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(o), older); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(older.Object, int64(3), "spec", number)
	if err := g.Client.Update(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(before.Object, int64(3), "spec", number)
	if diff := cmp.Diff(before.Object["spec"], o.Object["spec"]); diff != "" {
		t.Errorf("an update through v1alpha1 (-want +got):\n%s", diff)
	}
}

// NoTemplates expects that what the API server was asked about templates was stored nowhere.
func NoTemplates(t *testing.T, g *Ground) {
	t.Helper()
	var left corev1.PodTemplateList
	if err := g.Client.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("%d PodTemplates are stored (%v)", len(left.Items), err)
	}
}

// Alone is how to find out that an API server applies the policy alone: the webhooks set Defaulted, a field of the spec, and the policy rejects Bad
// at the path At.
type Alone struct{ Defaulted, Bad, At string }

// Policy has the webhooks review, then removes the webhooks and installs the policy, which must decide alike. What rejects something names the
// reviewer.
func (k Kind) Policy(t *testing.T, g *Ground, a Alone, review func(t *testing.T, reviewer string)) {
	t.Run("Webhook", func(t *testing.T) { review(t, "denied the request") })
	k.ApplyPolicy(t, g)
	g.Withdraw(t)
	namespace := g.Namespace(t)
	Until(t, "the API server does not apply the policy alone", func(ctx context.Context) error {
		plain := k.New(t, "v1beta1", namespace, "")
		if err := g.Client.Create(ctx, plain, client.DryRunAll); err != nil {
			return err
		}
		if Field(plain, "spec", a.Defaulted) != nil {
			return errors.New("there are defaults")
		}
		return k.Rejects(ctx, g, k.New(t, "v1beta1", namespace, a.Bad), a.At)
	})
	t.Run("Policy", func(t *testing.T) { review(t, k.policy()) })
}

// Rejects is an error unless the policy rejects an object at a path.
func (k Kind) Rejects(ctx context.Context, g *Ground, o client.Object, path string) error {
	return Says(g.Client.Create(ctx, o, client.DryRunAll), k.policy(), path)
}

// PolicyFile is the file of the policy.
func (k Kind) PolicyFile() string {
	return filepath.Join("..", "..", "config", "webhook", k.Name+"-policy.yaml")
}

// ApplyPolicy installs the policy. API servers apply it some time later.
func (k Kind) ApplyPolicy(t *testing.T, g *Ground) {
	t.Helper()
	if out, err := g.Kubectl(t.Context(), "apply", "-f", k.PolicyFile()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Creations reviews new objects. They are rejected at the path Want, or admitted where it is empty.
func (k Kind) Creations(t *testing.T, g *Ground, reviewer string, cases map[string]struct{ Version, Patch, Want string }) {
	namespace := g.Namespace(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := Says(g.Client.Create(t.Context(), k.New(t, c.Version, namespace, c.Patch), client.DryRunAll), reviewer, c.Want); err != nil {
				t.Error(err)
			}
		})
	}
}

// Updates are updates of an object.
type Updates struct {
	// Reviewer is the webhook or the policy that rejects them.
	Reviewer string
	// Patch changes the spec before.
	Patch string
	Cases map[string]Update
}

// Update changes one field of the spec. It is rejected at the path Want, or admitted where it is empty.
type Update struct {
	Field string
	Value any
	Want  string
}

// Updates reviews updates.
func (k Kind) Updates(t *testing.T, g *Ground, u Updates) {
	t.Helper()
	namespace := g.Namespace(t)
	for name, c := range u.Cases {
		t.Run(name, func(t *testing.T) {
			o := k.New(t, "v1beta1", namespace, u.Patch)
			if err := g.Client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedField(o.Object, c.Value, "spec", c.Field); err != nil {
				t.Fatal(err)
			}
			if err := Says(g.Client.Update(t.Context(), o), u.Reviewer, c.Want); err != nil {
				t.Error(err)
			}
		})
	}
}
