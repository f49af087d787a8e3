package reviewtest

import (
	stdcmp "cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
)

// Kind is a kind, for what an API server must show of each.
type Kind struct {
	// Name is the kind, of the group apps.kruise.io unless there is another.
	Name, Group string
	// Cluster means that objects have no namespace.
	Cluster bool
	// Versions of the kind, the older one first; v1alpha1 and v1beta1 if nil.
	Versions []string
	// Spec returns that of a valid object of a version.
	Spec func(version string) string
	// Bad is a merge patch that makes the spec invalid. The webhook rejects it with Code, and with a cause at each path of
	// At.
	Bad  string
	Code int32
	At   []string
	// Recorded are the steps of which the reference has recorded objects, and Fields those of the spec in which nothing is
	// added to what it has stored; all if nil.
	Recorded, Fields []string
	// Kept is a merge patch of a spec of the newer version, of which an update of Number through the older version changes
	// nothing else.
	Kept, Number string
	// Prepare creates what valid objects of a namespace need.
	Prepare func(t *testing.T, g *Ground, namespace string)
	// Reworded are refusals of the webhook in place of those of the schema, by the reasons of the mistakes. Empty for one
	// that the webhook mends.
	Reworded map[string]string
	// Refused are the paths of the manifests that the reference rejects too, by version.
	Refused map[string][]string
	// with is a merge patch of every spec.
	with string
	// Policy is the policy of the kind, in config/webhook; the kind in lower case if empty.
	Policy string
}

func (k Kind) lower() string { return strings.ToLower(k.Name) }

func (k Kind) versions() []string {
	if k.Versions == nil {
		return plaintest.Versions()
	}
	return k.Versions
}

// With returns the kind with a merge patch of every spec.
func (k Kind) With(patch string) Kind {
	k.with = patch
	return k
}

// Namespace returns a new one.
func (k Kind) Namespace(t *testing.T, g *Ground) string {
	t.Helper()
	namespace := g.Namespace(t)
	if k.Prepare != nil {
		k.Prepare(t, g, namespace)
	}
	return namespace
}

// namespace returns a new one; empty for a kind without.
func (k Kind) namespace(t *testing.T, g *Ground) string {
	t.Helper()
	if namespace := k.Namespace(t, g); !k.Cluster {
		return namespace
	}
	return ""
}

// Latest is the newest version.
func (k Kind) Latest() string { return k.versions()[len(k.versions())-1] }

// New returns a valid object whose spec is changed by a merge patch.
func (k Kind) New(t testing.TB, version, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	if k.Cluster {
		namespace = ""
	}
	o := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":%q,"metadata":{"generateName":"a-","namespace":%q},"spec":%s}`,
		stdcmp.Or(k.Group, "apps.kruise.io"), version, k.Name, namespace,
		plaintest.Patched(t, plaintest.Patched(t, k.Spec(version), k.with), patch))
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

// Review has the webhooks review what they must of each kind.
func (k Kind) Review(t *testing.T, g *Ground) {
	namespace := k.Namespace(t, g)
	for _, version := range k.versions() {
		if err := g.Client.Create(t.Context(), k.New(t, version, namespace, ""), client.DryRunAll); err != nil {
			t.Errorf("%s: a valid object: %v", version, err)
		}
		Refused(t, g.Client.Create(t.Context(), k.New(t, version, namespace, k.Bad), client.DryRunAll), k.Code, k.At...)
	}
	t.Run("Manifests", func(t *testing.T) { k.manifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { k.mistakes(t, g) })
	t.Run("Recorded", func(t *testing.T) { k.recorded(t, g) })
	t.Run("Kept", func(t *testing.T) { k.kept(t, g) })
	t.Run("Stored", func(t *testing.T) { k.stored(t, g) })
}

// create makes an object that ends with the test: the namespace of another one ends with it.
func (g *Ground) create(t *testing.T, o *unstructured.Unstructured, opts ...client.CreateOption) error {
	t.Helper()
	err := g.Client.Create(t.Context(), o, opts...)
	if err == nil && o.GetNamespace() == "" {
		t.Cleanup(func() { g.Leave(t, o) })
	}
	return err
}

// touch changes a label.
func touch(o *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(o.Object, "true", "metadata", "labels", "touched")
}

// manifests applies the manifests of the reference's API unchanged, and once more as an update of something else.
func (k Kind) manifests(t *testing.T, g *Ground) {
	for _, version := range k.versions() {
		namespace := k.namespace(t, g)
		if at, is := k.Refused[version]; is {
			for _, o := range Manifests(t, version, k.lower()+"s.refused.yaml") {
				o.SetNamespace(namespace)
				Refused(t, g.Client.Create(t.Context(), o), k.Code, at...)
			}
		}
		for _, o := range Manifests(t, version, k.lower()+"s.yaml") {
			o.SetNamespace(namespace)
			if err := g.create(t, o, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s, %s: %v", version, o.GetName(), err)
				continue
			}
			touch(o)
			if err := g.Client.Update(t.Context(), o); err != nil {
				t.Errorf("%s, %s: update: %v", version, o.GetName(), err)
			}
			if k.Cluster { // the other version has the same names
				g.Leave(t, o)
			}
		}
	}
}

// mistakes makes mistakes in manifests. With the webhooks in front, the schema still names what is wrong.
func (k Kind) mistakes(t *testing.T, g *Ground) {
	namespace := k.namespace(t, g)
	for _, m := range Mistakes(t, k.lower()+"s.yaml") {
		for _, version := range k.versions() {
			if m.Version != "" && m.Version != version || strings.HasPrefix(m.Refusal, "status.") || m.Patch["spec"] == nil {
				continue // a creation writes no status
			}
			t.Run(m.Why+"/"+version, func(t *testing.T) {
				for _, o := range Manifests(t, version, k.lower()+"s.yaml") {
					if o.SetNamespace(namespace); o.GetName() == m.Manifest {
						k.mistake(t, g, m, o)
					}
				}
			})
		}
	}
}

func (k Kind) mistake(t *testing.T, g *Ground, m Mistake, o *unstructured.Unstructured) {
	t.Helper()
	plaintest.Merge(o.Object, m.Patch)
	err := g.Client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
	want := m.Refusal
	if reworded, is := k.Reworded[m.Why]; is {
		want = reworded
	}
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("want %q, got %v", want, err)
	}
}

// recorded creates and updates what the reference has defaulted: there is nothing left to add. So an object that is
// taken over differs from its revisions in nothing.
func (k Kind) recorded(t *testing.T, g *Ground) {
	namespace := g.Namespace(t)
	for _, step := range k.Recorded {
		for _, version := range k.versions() {
			for _, recorded := range Recorded(t, step, k.lower()+"s."+version+".yaml") {
				o := k.New(t, version, namespace, "")
				o.Object["spec"] = recorded.DeepCopy().Object["spec"]
				if err := g.create(t, o); err != nil {
					t.Error(err)
					continue
				}
				k.same(t, recorded, o)
				touch(o)
				if err := g.Client.Update(t.Context(), o); err != nil {
					t.Error(err)
				}
				k.same(t, recorded, o)
			}
		}
	}
}

// same compares specs, without what clients write for a time that is not set.
func (k Kind) same(t *testing.T, recorded, now *unstructured.Unstructured) {
	t.Helper()
	written := func(o *unstructured.Unstructured) string {
		spec := Field(o, "spec")
		if len(k.Fields) > 0 {
			fields := map[string]any{}
			for _, field := range k.Fields {
				fields[field] = Field(o, "spec", field)
			}
			spec = fields
		}
		return strings.ReplaceAll(plaintest.Encode(t, spec), `"creationTimestamp":null,`, "")
	}
	if diff := cmp.Diff(written(recorded), written(now)); diff != "" {
		t.Errorf("%s, %s (-recorded +now):\n%s", now.GetAPIVersion(), recorded.GetName(), diff)
	}
}

// kept changes a number in the spec of an object of the newer version through the older one, as old clients do: nothing
// else changes.
func (k Kind) kept(t *testing.T, g *Ground) {
	if k.Kept == "" {
		return
	}
	namespace := g.Namespace(t)
	o := k.New(t, "v1beta1", namespace, k.Kept)
	if err := g.create(t, o); err != nil {
		t.Fatal(err)
	}
	before := o.DeepCopy()
	older := k.New(t, "v1alpha1", namespace, "")
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(o), older); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(older.Object, int64(3), "spec", k.Number)
	if err := g.Client.Update(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(before.Object, int64(3), "spec", k.Number)
	if diff := cmp.Diff(before.Object["spec"], o.Object["spec"]); diff != "" {
		t.Errorf("an update through v1alpha1 (-want +got):\n%s", diff)
	}
}

// stored updates an object that was stored before the webhooks: its fault rejects no update in any version, and no
// finalizer is stuck.
func (k Kind) stored(t *testing.T, g *Ground) {
	o := k.New(t, k.Latest(), k.Namespace(t, g), k.Bad)
	o.SetGenerateName("")
	o.SetName(Early)
	o.SetFinalizers([]string{"example.com/hold"})
	if err := g.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, version := range k.versions() {
		seen := k.New(t, version, o.GetNamespace(), "")
		seen.SetName(o.GetName())
		touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"touched":"`+version+`"}}}`))
		if err := g.Client.Patch(t.Context(), seen, touch); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	g.Leave(t, o)
}

// Stored expects that what the API server was asked about was stored nowhere.
func Stored(t *testing.T, g *Ground, lists ...client.ObjectList) {
	t.Helper()
	for _, list := range append(lists, &corev1.PodTemplateList{}) {
		if err := g.Client.List(t.Context(), list); err != nil || len(plaintest.Encode(t, list)) > 200 {
			t.Errorf("stored by a dry run: %.2000s (%v)", plaintest.Encode(t, list), err)
		}
	}
}

// Creation is a new object of a version, whose spec a patch changes. It is rejected at the path Want, or admitted where
// that is empty. Without a version it is one of each.
type Creation struct{ Version, Patch, Want string }

// Creations reviews new objects.
func (k Kind) Creations(t *testing.T, g *Ground, reviewer string, cases map[string]Creation) {
	t.Helper()
	namespace := k.Namespace(t, g)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			versions := k.versions()
			if c.Version != "" {
				versions = []string{c.Version}
			}
			for _, version := range versions {
				err := g.Client.Create(t.Context(), k.New(t, version, namespace, c.Patch), client.DryRunAll)
				if err := Says(err, reviewer, c.Want); err != nil {
					t.Errorf("%s: %v", version, err)
				}
			}
		})
	}
}

// Update changes one field of the spec. It is rejected at the path Want, or admitted where it is empty.
type Update struct {
	Field string
	Value any
	Want  string
}

// Updates reviews updates of an object.
func (k Kind) Updates(t *testing.T, g *Ground, reviewer string, cases map[string]Update) {
	t.Helper()
	o := k.New(t, k.Latest(), k.Namespace(t, g), "")
	if err := g.create(t, o); err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			changed := o.DeepCopy()
			path := append([]string{"spec"}, strings.Split(c.Field, ".")...)
			if err := unstructured.SetNestedField(changed.Object, c.Value, path...); err != nil {
				t.Fatal(err)
			}
			if err := Says(g.Client.Update(t.Context(), changed, client.DryRunAll), reviewer, c.Want); err != nil {
				t.Error(err)
			}
		})
	}
}
