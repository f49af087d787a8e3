//go:build envtest

package deletion_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/protection"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

// policy is what policies call themselves.
const policy = "ValidatingAdmissionPolicy"

// onServer is an object on the API server, with the row of its kind.
type onServer struct {
	kind   protection.Kind
	object *unstructured.Unstructured
}

// judged is what the pure decision says of an object. The dependents of namespaces and definitions of the table are
// none.
func (o onServer) judged() protection.Verdict {
	in := protection.Input{
		Policy: protection.Policy{CountInstances: true}, Kind: o.kind, Object: o.object,
		Count: func(protection.Dependents) (protection.Count, error) { return protection.Count{}, nil },
	}
	if n, found, _ := unstructured.NestedInt64(o.object.Object, "spec", "replicas"); found {
		replicas := int32(n)
		in.Replicas = &replicas
	}
	return protection.Decide(in)
}

// specs are what each kind needs to be stored.
func specOf(k protection.Kind, name string) map[string]any {
	labels := map[string]any{"app": "a"}
	template := map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "app:1"}}},
	}
	workload := map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template}
	switch k.Group + "/" + k.Kind {
	case "/Service":
		return map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
	case "networking.k8s.io/Ingress":
		return map[string]any{"defaultBackend": map[string]any{"service": map[string]any{
			"name": "a", "port": map[string]any{"number": int64(80)},
		}}}
	case "apiextensions.k8s.io/CustomResourceDefinition":
		plural, _, _ := strings.Cut(name, ".")
		return map[string]any{
			"group": "example.com",
			"scope": "Namespaced",
			"names": map[string]any{"plural": plural, "kind": strings.ToUpper(plural[:1]) + plural[1:]},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		}
	case "apps.kruise.io/UnitedDeployment":
		workload["template"] = map[string]any{"cloneSetTemplate": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template},
		}}
		workload["topology"] = map[string]any{}
	}
	if k.Workload() {
		return workload
	}
	return nil
}

// newObject is an object of a kind. Label "-" leaves the label out.
func newObject(k protection.Kind, version, namespace, label string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(strings.TrimPrefix(k.Group+"/"+version, "/"))
	o.SetKind(k.Kind)
	serial++
	o.SetName(fmt.Sprintf("o%d", serial))
	switch k.Kind {
	case "CustomResourceDefinition":
		o.SetName(o.GetName() + ".example.com")
	case "Namespace":
	default:
		o.SetNamespace(namespace)
	}
	if label != "-" {
		o.SetLabels(map[string]string{key: label})
	}
	if spec := specOf(k, o.GetName()); spec != nil {
		o.Object["spec"] = spec
	}
	return o
}

// serial makes names. One test at a time draws from it.
var serial int

// createAll creates objects of all kinds with all values of the label.
func createAll(t *testing.T, g *reviewtest.Ground) []onServer {
	t.Helper()
	namespace := g.Namespace(t)
	var all []onServer
	add := func(k protection.Kind, label string, change func(*unstructured.Unstructured)) {
		o := newObject(k, newestVersion(k), namespace, label)
		change(o)
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatalf("%s: %v", k.Kind, err)
		}
		all = append(all, onServer{kind: k, object: o})
	}
	as := func(*unstructured.Unstructured) {}
	for _, k := range protection.Kinds() {
		for _, label := range []string{"Always", "Cascading", "always", "-"} {
			add(k, label, as)
		}
		if k.Workload() {
			for _, replicas := range []int64{0, 2} {
				add(k, "Cascading", func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(o.Object, replicas, "spec", "replicas")
				})
			}
		}
		add(k, "Always", func(o *unstructured.Unstructured) {
			o.SetFinalizers([]string{"example.com/hold"})
			if k.Kind == "Namespace" {
				o.SetFinalizers(nil) // it has one in its spec
			}
		})
		leaving := all[len(all)-1].object
		terminate(t, g, leaving)
	}
	return all
}

// terminate deletes a protected object by taking its label away for a moment.
func terminate(t *testing.T, g *reviewtest.Ground, o *unstructured.Unstructured) {
	t.Helper()
	label := func(value any) {
		patch := client.RawPatch("application/merge-patch+json",
			[]byte(fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, value)))
		if err := g.Client.Patch(t.Context(), o, patch); err != nil {
			t.Fatal(err)
		}
	}
	label("null")
	if err := g.Client.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	label(`"Always"`)
	if o.GetDeletionTimestamp() == nil {
		t.Fatalf("%s is not terminating", o.GetKind())
	}
}

func newestVersion(k protection.Kind) string {
	if slices.Contains(k.Versions, "v1") {
		return "v1"
	}
	return "v1beta1"
}

// both are the versions of a kind that this API server has.
func both(k protection.Kind) []string {
	if newest := newestVersion(k); newest == "v1" {
		return []string{newest}
	}
	return k.Versions
}

// judgeAll wants each object to be judged by the policies as the pure decision does, in a dry run as well as not. What
// is allowed is only tried in a dry run.
func judgeAll(t *testing.T, g *reviewtest.Ground, all []onServer) {
	t.Helper()
	refused, allowed := 0, 0
	for _, o := range all {
		want := o.judged()
		for _, version := range both(o.kind) {
			object := o.object.DeepCopy()
			object.SetAPIVersion(strings.TrimPrefix(o.kind.Group+"/"+version, "/"))
			object.SetResourceVersion("")
			tries := [][]client.DeleteOption{{client.DryRunAll}}
			if want.Refused() {
				tries = append(tries, nil)
			}
			for _, options := range tries {
				err := g.Client.Delete(t.Context(), object, options...)
				if wrong := wants(err, want, policy); wrong != nil {
					t.Errorf("%s %s %v: %v", object.GetAPIVersion(), object.GetKind(), object.GetLabels(), wrong)
				}
			}
		}
		if want.Refused() {
			refused++
		} else {
			allowed++
		}
	}
	if refused < 10 || allowed < 20 {
		t.Errorf("%d objects are refused, %d allowed: these show little", refused, allowed)
	}
}

// wants compares an answer with a verdict.
func wants(err error, want protection.Verdict, judge string) error {
	if !want.Refused() {
		return err
	}
	if !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), want.Message) ||
		!strings.Contains(fmt.Sprint(err), judge) {
		return fmt.Errorf("want 403 %q by %s, got %w", want.Message, judge, cmpError(err))
	}
	if strings.Contains(err.Error(), "failed calling webhook") {
		return err
	}
	return nil
}

func cmpError(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// refused are the first object of each kind that is refused for each reason.
func refused(all []onServer) []onServer {
	first := map[string]onServer{}
	for _, o := range slices.Backward(all) {
		if v := o.judged(); v.Refused() {
			first[o.kind.Group+"/"+o.kind.Kind+string(v.Code)] = o
		}
	}
	return slices.Collect(maps.Values(first))
}

// untilJudged waits until the judge refuses what it must.
func untilJudged(t *testing.T, g *reviewtest.Ground, all []onServer, judge string) {
	t.Helper()
	reviewtest.Until(t, "the judge does not judge", func(ctx context.Context) error {
		for _, o := range refused(all) {
			if err := wants(g.Client.Delete(ctx, o.object.DeepCopy(), client.DryRunAll), o.judged(), judge); err != nil {
				return fmt.Errorf("%s: %w", o.kind.Kind, err)
			}
		}
		return nil
	})
}
