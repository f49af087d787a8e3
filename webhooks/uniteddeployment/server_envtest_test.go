//go:build envtest

package uniteddeployment_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/uniteddeployment"
)

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"uniteddeployments"}, Setup: serve, Bad: newObject(t, "v1beta1", "default", "cloneSetTemplate", `{"revisionHistoryLimit":-1}`),
	})
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { testMistakes(t, g) })
	t.Run("Templates", func(t *testing.T) { testTemplates(t, g) })
	t.Run("Recorded", func(t *testing.T) { testRecorded(t, g) })
	t.Run("Versions", func(t *testing.T) { testVersions(t, g) })
	for _, list := range []client.ObjectList{&corev1.PodTemplateList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}} {
		if err := g.Client.List(t.Context(), list); err != nil || len(plaintest.Encode(t, list)) > 200 {
			t.Errorf("stored by a dry run: %s (%v)", plaintest.Encode(t, list), err)
		}
	}
	t.Run("Policy", func(t *testing.T) { testPolicy(t, g) })
}

func serve(mgr ctrl.Manager, api client.Client) error {
	mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
	w, err := uniteddeployment.New(api, uniteddeployment.Options{})
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

// newObject is a UnitedDeployment of a generated name.
func newObject(t *testing.T, version, namespace, member, patch string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	text := strings.Replace(object(t, version, namespace, member, patch), `"name":"web","namespace"`, `"generateName":"web-","namespace"`, 1)
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return o
}

// testManifests applies the manifests of the reference's API unchanged, and updates something else in them.
func testManifests(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		namespace := g.Namespace(t)
		for _, o := range reviewtest.Manifests(t, version, "uniteddeployments.yaml") {
			o.SetNamespace(namespace)
			if err := g.Client.Create(t.Context(), o, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s, %s: %v", version, o.GetName(), err)
				continue
			}
			o.SetLabels(map[string]string{"touched": "true"})
			if err := g.Client.Update(t.Context(), o); err != nil {
				t.Errorf("%s, %s: update: %v", version, o.GetName(), err)
			}
		}
	}
}

// testMistakes makes mistakes in manifests; with the webhooks in front the schema still names what is wrong.
func testMistakes(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, m := range reviewtest.Mistakes(t, "uniteddeployments.yaml") {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			if m.Version != "" && m.Version != version {
				continue
			}
			t.Run(m.Why+"/"+version, func(t *testing.T) {
				for _, o := range reviewtest.Manifests(t, version, "uniteddeployments.yaml") {
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
			})
		}
	}
}

// testTemplates has the API server find what is wrong in the templates of all kinds.
func testTemplates(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, member := range members() {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			at := "spec.template." + member + ".spec"
			bad := newObject(t, version, namespace, member, `{"template":{"`+member+`":{"spec":{"template":{"spec":{"containers":[{"name":"A b","image":"web:1"}]}}}}}}`)
			if err := reviewtest.Says(g.Client.Create(t.Context(), bad), "denied the request", at+".template.spec.containers[0].name"); err != nil {
				t.Errorf("%s %s: %v", version, member, err)
			}
			strategy := map[string]string{"deploymentTemplate": "strategy", "statefulSetTemplate": "updateStrategy"}[member]
			if strategy == "" {
				continue
			}
			bad = newObject(t, version, namespace, member, `{"template":{"`+member+`":{"spec":{"`+strategy+`":{"type":"Gently"}}}}}`)
			if err := reviewtest.Says(g.Client.Create(t.Context(), bad), "denied the request", at+"."+strategy); err != nil {
				t.Errorf("%s %s: %v", version, member, err)
			}
		}
	}
	good := newObject(t, "v1beta1", namespace, "statefulSetTemplate", "")
	if err := g.Client.Create(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	if policy := reviewtest.Field(good, "spec", "template", "statefulSetTemplate", "spec", "template", "spec", "dnsPolicy"); policy != "ClusterFirst" {
		t.Errorf("dnsPolicy %v", policy)
	}
}

// testRecorded creates what the reference has defaulted: nothing is left to add, so that an object that is taken over and changed differs from
// its revisions in nothing but the change.
func testRecorded(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, recorded := range reviewtest.Recorded(t, "1-created", "uniteddeployments."+version+".yaml") {
			o := newObject(t, version, namespace, "cloneSetTemplate", "")
			o.Object["spec"] = recorded.DeepCopy().Object["spec"]
			if err := g.Client.Create(t.Context(), o); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(written(t, recorded), written(t, o)); diff != "" {
				t.Errorf("%s, %s (-recorded +now):\n%s", version, recorded.GetName(), diff)
			}
		}
	}
}

// written is a spec without what clients write for a time that is not set.
func written(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	return strings.ReplaceAll(plaintest.Encode(t, o.Object["spec"]), `"creationTimestamp":null,`, "")
}

// testVersions writes an object of the newer version through the older one, as old clients do: nothing is lost.
func testVersions(t *testing.T, g *reviewtest.Ground) {
	o := newObject(t, "v1beta1", g.Namespace(t), "cloneSetTemplate", `{"topology":{"scheduleStrategy":{"type":"Adaptive"},"subsets":[{"name":"a","maxReplicas":"50%","patch":{"metadata":{"labels":{"x":"y"}}}},{"name":"b"}]},
		"template":{"cloneSetTemplate":{"spec":{"scaleStrategy":{"maxUnavailable":1},"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":2}}}}}}`)
	if err := g.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	before := o.DeepCopy()
	alpha := newObject(t, "v1alpha1", o.GetNamespace(), "cloneSetTemplate", "")
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(o), alpha); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(alpha.Object, int64(9), "spec", "replicas")
	if err := g.Client.Update(t.Context(), alpha); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(before.Object, int64(9), "spec", "replicas")
	if diff := cmp.Diff(before.Object["spec"], o.Object["spec"]); diff != "" {
		t.Errorf("an update through v1alpha1 (-want +got):\n%s", diff)
	}
}

// testPolicy has the webhooks review some objects, then removes them and installs the policy, which must decide alike.
func testPolicy(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	t.Run("Webhook", func(t *testing.T) { reviewAll(t, g, namespace, "denied the request") })
	if out, err := g.Kubectl(t.Context(), "apply", "-f", filepath.Join("..", "..", "config", "webhook", "uniteddeployment-policy.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.Withdraw(t)
	reviewtest.Until(t, "the API server does not apply the policy alone", func(ctx context.Context) error {
		plain := newObject(t, "v1beta1", namespace, "cloneSetTemplate", "")
		if err := g.Client.Create(ctx, plain, client.DryRunAll); err != nil {
			return err
		}
		if reviewtest.Field(plain, "spec", "revisionHistoryLimit") != nil {
			return errors.New("there are defaults")
		}
		bad := newObject(t, "v1beta1", namespace, "cloneSetTemplate", `{"revisionHistoryLimit":-1}`)
		return reviewtest.Says(g.Client.Create(ctx, bad, client.DryRunAll), "kruisekit-uniteddeployment", "spec.revisionHistoryLimit")
	})
	t.Run("Policy", func(t *testing.T) { reviewAll(t, g, namespace, "kruisekit-uniteddeployment") })
}

// many are subsets, as JSON.
func many(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`{"name":"s%d"}`, i)
	}
	return strings.Join(names, ",")
}

// reviewAll expects refusals by one reviewer, each for its reason.
func reviewAll(t *testing.T, g *reviewtest.Ground, namespace, reviewer string) {
	const adaptive = `"scheduleStrategy":{"type":"Adaptive","adaptive":{`
	for name, c := range map[string]struct{ member, patch, want string }{
		"nothing is set":        {"cloneSetTemplate", ``, ""},
		"no replicas":           {"deploymentTemplate", `{"replicas":null}`, ""},
		"a negative limit":      {"cloneSetTemplate", `{"revisionHistoryLimit":-1}`, "spec.revisionHistoryLimit"},
		"an empty selector":     {"cloneSetTemplate", `{"selector":{"matchLabels":null}}`, "spec.selector"},
		"no template":           {"cloneSetTemplate", `{"template":null}`, "spec.template"},
		"two templates":         {"cloneSetTemplate", `{"template":{"deploymentTemplate":{"metadata":{"labels":{"app":"web"}},"spec":{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}}}`, "spec.template"},
		"a bad name":            {"cloneSetTemplate", `{"topology":{"subsets":[{"name":"A"},{"name":"b"}]}}`, "spec.topology.subsets"},
		"a name twice":          {"cloneSetTemplate", `{"topology":{"subsets":[{"name":"b"},{"name":"b"}]}}`, "spec.topology.subsets"},
		"many subsets":          {"cloneSetTemplate", `{"topology":{"subsets":[` + many(128) + `]}}`, ""},
		"very many subsets":     {"cloneSetTemplate", `{"topology":{"subsets":[` + many(500) + `]}}`, ""},
		"too many subsets":      {"cloneSetTemplate", `{"topology":{"subsets":[` + many(513) + `]}}`, "spec.topology.subsets"},
		"shares beside bounds":  {"cloneSetTemplate", `{"topology":{"subsets":[{"name":"a","replicas":2},{"name":"b","maxReplicas":2},{"name":"c"}]}}`, "spec.topology.subsets"},
		"all limited":           {"cloneSetTemplate", `{"topology":{"subsets":[{"name":"a","maxReplicas":2},{"name":"b","maxReplicas":9}]}}`, "spec.topology.subsets"},
		"bounds":                {"cloneSetTemplate", `{"topology":{"subsets":[{"name":"a","minReplicas":1,"maxReplicas":"50%"},{"name":"b"}]}}`, ""},
		"shares and Adaptive":   {"cloneSetTemplate", `{"topology":{` + adaptive + `}},"subsets":[{"name":"a","replicas":2},{"name":"b"}]}}`, "spec.topology.subsets"},
		"a negative time":       {"cloneSetTemplate", `{"topology":{` + adaptive + `"unschedulableDuration":-1}}}}`, "spec.topology.scheduleStrategy.adaptive"},
		"reservation":           {"deploymentTemplate", `{"topology":{` + adaptive + `"reserveUnschedulablePods":true}}}}`, ""},
		"reservation, by order": {"statefulSetTemplate", `{"topology":{` + adaptive + `"reserveUnschedulablePods":true}}}}`, "reserveUnschedulablePods"},
		"an unknown partition":  {"cloneSetTemplate", `{"updateStrategy":{"manualUpdate":{"partitions":{"x":1}}}}`, "spec.updateStrategy.manualUpdate.partitions"},
		"a negative partition":  {"cloneSetTemplate", `{"updateStrategy":{"manualUpdate":{"partitions":{"a":-1}}}}`, "spec.updateStrategy.manualUpdate.partitions"},
		"a partition":           {"cloneSetTemplate", `{"updateStrategy":{"manualUpdate":{"partitions":{"a":1}}}}`, ""},
		"a partition of none":   {"deploymentTemplate", `{"updateStrategy":{"manualUpdate":{"partitions":{"a":1}}}}`, "spec.updateStrategy.manualUpdate.partitions"},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				if err := reviewtest.Says(g.Client.Create(t.Context(), newObject(t, version, namespace, c.member, c.patch), client.DryRunAll), reviewer, c.want); err != nil {
					t.Error(err)
				}
			})
		}
	}
	zone := map[string]any{"matchExpressions": []any{map[string]any{"key": "zone", "operator": "Exists"}}}
	for name, c := range map[string]struct {
		path  []string
		value any
		want  string
	}{
		"another selector":   {[]string{"selector"}, map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}}, "spec.selector"},
		"another term":       {[]string{"topology", "subsets"}, []any{map[string]any{"name": "a", "nodeSelectorTerm": zone}, map[string]any{"name": "b"}}, "nodeSelectorTerm"},
		"another toleration": {[]string{"topology", "subsets"}, []any{map[string]any{"name": "a", "tolerations": []any{map[string]any{"operator": "Exists"}}}}, "tolerations"},
		"another order":      {[]string{"topology", "subsets"}, []any{map[string]any{"name": "b"}, map[string]any{"name": "a"}}, ""},
		"another name":       {[]string{"topology", "subsets"}, []any{map[string]any{"name": "c", "nodeSelectorTerm": zone}, map[string]any{"name": "b"}}, ""},
		"more pods":          {[]string{"replicas"}, int64(7), ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObject(t, "v1beta1", namespace, "cloneSetTemplate", "")
			if err := g.Client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedField(o.Object, c.value, append([]string{"spec"}, c.path...)...); err != nil {
				t.Fatal(err)
			}
			if err := reviewtest.Says(g.Client.Update(t.Context(), o), reviewer, c.want); err != nil {
				t.Error(err)
			}
		})
	}
}
