//go:build envtest

package webhooks_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

func cloneSets() entry {
	return entry{Kind: reviewtest.Kind{
		Name: "CloneSet", Bad: `{"updateStrategy":{"type":"x"}}`, Code: 422, At: []string{"spec.updateStrategy.type"},
		Spec:     as(selected),
		Recorded: []string{"1-created"}, Fields: []string{"template", "volumeClaimTemplates", "updateStrategy"},
		Refused: map[string][]string{"v1alpha1": {"spec.scaleStrategy.podsToDelete", "spec.scaleStrategy.podsToDelete"}},
	}, own: testCloneSets, policy: reviewCloneSets}
}

func testCloneSets(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	t.Run("Template", func(t *testing.T) { testTemplate(t, k, g) })
	t.Run("Calls", func(t *testing.T) { testCalls(t, k, g) })
	t.Run("PodsToDelete", func(t *testing.T) { testPodsToDelete(t, k, g) })
	t.Run("OnDelete", func(t *testing.T) { testOnDelete(t, k, g) })
}

func reviewCloneSets(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	// The API server asks no reviewer about this, because of the scale subresource.
	k.Creations(t, g, "should be a non-negative integer", map[string]reviewtest.Creation{
		"negative replicas": {Version: "v1beta1", Patch: `{"replicas":-1}`, Want: "spec.replicas: "},
	})
	k.Creations(t, g, k.PolicyName(), map[string]reviewtest.Creation{
		"nothing is set": {Version: "v1beta1"},
		"a type of the other": {
			Version: "v1beta1", Patch: `{"updateStrategy":{"type":"ReCreate"}}`, Want: "spec.updateStrategy.type",
		},
		"an unknown type": {
			Version: "v1alpha1", Patch: `{"updateStrategy":{"type":"RollingUpdate"}}`, Want: "spec.updateStrategy.type",
		},
		"an empty type": {Version: "v1beta1", Patch: `{"updateStrategy":{"type":"","rollingUpdate":{"podUpdatePolicy":""}}}`},
		"OnDelete in v1alpha1": {
			Version: "v1alpha1", Patch: `{"updateStrategy":{"type":"OnDelete"}}`, Want: "spec.updateStrategy.type",
		},
		"an unknown policy": {
			Version: "v1beta1", Patch: `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"Gently"}}}`,
			Want: "podUpdatePolicy",
		},
		"a known policy": {
			Version: "v1beta1", Patch: `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceOnly","partition":1}}}`,
		},
	})
	k.With(`{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}}`).Updates(t, g, k.PolicyName(),
		map[string]reviewtest.Update{
			"another label": {
				Field: "selector", Value: map[string]any{"matchLabels": map[string]any{"app": "b"}}, Want: "spec: ",
			},
			"another expression": {
				Field: "selector", Value: map[string]any{"matchLabels": map[string]any{"app": "a"}}, Want: "spec: ",
			},
			"empty values": {
				Field: "selector", Value: map[string]any{
					"matchLabels":      map[string]any{"app": "a"},
					"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists", "values": []any{}}},
				},
			},
		})
}

// testTemplate has templates judged and completed.
func testTemplate(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	wrong := k.New(t, "v1alpha1", namespace, `{"template":{"spec":{"containers":[{"name":"A b","image":"x"}]}}}`)
	reviewtest.Refused(t, g.Client.Create(t.Context(), wrong), 422, "spec.template.spec.containers[0].name")
	claim := k.New(t, "v1beta1", namespace, `{"volumeClaimTemplates":[{"metadata":{"name":"Not A Name"}}]}`)
	reviewtest.Refused(t, g.Client.Create(t.Context(), claim), 422, "spec.volumeClaimTemplates[0].metadata.name")
	number := k.New(t, "v1beta1", namespace, `{"template":{"spec":{"containers":7}}}`)
	if err := g.Client.Create(t.Context(), number); !apierrors.IsBadRequest(err) ||
		!strings.Contains(err.Error(), "spec.template.spec.containers") {
		t.Errorf("containers are a number: %v", err)
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		set := k.New(t, version, namespace, `{"template":{"spec":{"fromTheFuture":{"n":1},"serviceAccountName":"x",
			"initContainers":[{"name":"init","image":"init:1"}],
			"containers":[{"name":"main","image":"app:1","alsoNew":[1],"resources":{"limits":{"cpu":0.5,"memory":"1024Mi"}},
				"volumeMounts":[{"name":"data","mountPath":"/data"}]}]}},
			"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"fromTheFuture":1,
				"resources":{"requests":{"storage":"1Gi"}}}}]}`)
		if err := g.Client.Create(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"fromTheFuture": map[string]any{"n": int64(1)}, "serviceAccountName": "x",
			"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
			"securityContext": map[string]any{}, "terminationGracePeriodSeconds": int64(30),
			"initContainers": []any{map[string]any{
				"name": "init", "image": "init:1", "imagePullPolicy": "IfNotPresent", "resources": map[string]any{},
				"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
			}},
			"containers": []any{map[string]any{
				"name": "main", "image": "app:1", "alsoNew": []any{int64(1)}, "imagePullPolicy": "Always",
				"resources":              map[string]any{"limits": map[string]any{"cpu": 0.5, "memory": "1024Mi"}},
				"volumeMounts":           []any{map[string]any{"name": "data", "mountPath": "/data"}},
				"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
			}},
		}
		if diff := cmp.Diff(want, reviewtest.Field(set, "spec", "template", "spec")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
		wantClaims := []any{map[string]any{
			"metadata": map[string]any{"name": "data"}, "status": map[string]any{"phase": "Pending"},
			"spec": map[string]any{
				"accessModes": []any{"ReadWriteOnce"}, "fromTheFuture": int64(1),
				"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
			},
		}}
		if diff := cmp.Diff(wantClaims, reviewtest.Field(set, "spec", "volumeClaimTemplates")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

// testCalls counts what admissions cost: a new template is a dry run of each webhook.
func testCalls(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		set := k.New(t, version, namespace, "")
		cost := func(what string, want map[string]int, do func() error) {
			t.Helper()
			// A list has the API server's cache catch up. An update that goes by an older copy is reviewed twice.
			all := &unstructured.UnstructuredList{Object: map[string]any{
				"apiVersion": set.GetAPIVersion(),
				"kind":       "CloneSetList",
			}}
			if err := g.Client.List(t.Context(), all, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			got := g.Calls.Of(func() {
				if err := do(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", version, what, diff)
			}
		}
		cost("create", map[string]int{"create": 2}, func() error { return g.Client.Create(t.Context(), set) })
		cost("update beside the template", map[string]int{}, func() error {
			set.SetLabels(map[string]string{"a": "b"})
			_ = unstructured.SetNestedField(set.Object, int64(3), "spec", "replicas")
			return g.Client.Update(t.Context(), set)
		})
		cost("update of the template", map[string]int{"create": 2}, func() error {
			_ = unstructured.SetNestedField(set.Object, "b", "spec", "template", "metadata", "annotations", "a")
			return g.Client.Update(t.Context(), set)
		})
		cost("delete", map[string]int{}, func() error { return g.Client.Delete(t.Context(), set) })
	}
}

// testPodsToDelete names pods of the set and others.
func testPodsToDelete(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	set := k.New(t, "v1beta1", namespace, "")
	if err := g.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	yes := true
	owner := []metav1.OwnerReference{{
		APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: set.GetName(), UID: set.GetUID(), Controller: &yes,
	}}
	runPod(t, g, namespace, "mine", owner)
	runPod(t, g, namespace, "stray", nil)
	leaving := runPod(t, g, namespace, "leaving", owner)
	leaving.Finalizers = []string{"example.com/hold"}
	if err := g.Client.Update(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	try := func(name string) error {
		changed := set.DeepCopy()
		_ = unstructured.SetNestedStringSlice(changed.Object, []string{name}, "spec", "scaleStrategy", "podsToDelete")
		return g.Client.Update(t.Context(), changed, client.DryRunAll)
	}
	if err := try("mine"); err != nil {
		t.Errorf("a pod of the set: %v", err)
	}
	for _, name := range []string{"stray", "leaving", "nobody"} {
		reviewtest.Refused(t, try(name), 422, "spec.scaleStrategy.podsToDelete")
	}
	g.Leave(t, leaving)
}

func runPod(t *testing.T, g *reviewtest.Ground, namespace, name string, owner []metav1.OwnerReference) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"app": "a"},
			OwnerReferences: owner,
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
	if err := g.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// testOnDelete writes a set of the newer version through the older, as old clients do.
func testOnDelete(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	set := k.New(t, "v1beta1", g.Namespace(t), `{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"paused":true}}}`)
	if err := g.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	alpha := k.New(t, "v1alpha1", set.GetNamespace(), "")
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(set), alpha); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(alpha.Object, int64(3), "spec", "replicas")
	if err := g.Client.Update(t.Context(), alpha); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	if reviewtest.Field(set, "spec", "updateStrategy", "type") != "OnDelete" ||
		reviewtest.Field(set, "spec", "updateStrategy", "rollingUpdate", "paused") != true {
		t.Errorf("the strategy is now %v", reviewtest.Field(set, "spec", "updateStrategy"))
	}
}
