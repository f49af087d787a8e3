//go:build envtest

package cloneset_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
)

// testRefusedManifests applies manifests that the reference rejects too.
func testRefusedManifests(t *testing.T, g *reviewtest.Ground) {
	for _, set := range reviewtest.Manifests(t, "v1alpha1", "clonesets.refused.yaml") {
		set.SetNamespace("default")
		refusedAt(t, g.Client.Create(t.Context(), set), "spec.scaleStrategy.podsToDelete")
	}
}

// refusedAt wants 422 with a cause at the path.
func refusedAt(t *testing.T, err error, path string) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		t.Errorf("want a refusal at %s, got %v", path, err)
		return
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == path {
			return
		}
	}
	t.Errorf("no cause at %s: %v", path, err)
}

// testDefaults: what a set leaves out is filled in, in a block that is there in part as well, and means the same in both
// versions.
func testDefaults(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	set := newSet(t, "v1alpha1", namespace, "")
	if err := g.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"type": "ReCreate", "partition": int64(0), "maxUnavailable": "20%", "maxSurge": int64(0)}
	if diff := cmp.Diff(want, reviewtest.Field(set, "spec", "updateStrategy")); diff != "" {
		t.Errorf("v1alpha1 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{int64(1), int64(10)}, []any{reviewtest.Field(set, "spec", "replicas"), reviewtest.Field(set, "spec", "revisionHistoryLimit")}); diff != "" {
		t.Errorf("v1alpha1 (-want +got):\n%s", diff)
	}
	hub := newSet(t, "v1beta1", namespace, "")
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(set), hub); err != nil {
		t.Fatal(err)
	}
	rolling := map[string]any{"podUpdatePolicy": "ReCreate", "partition": int64(0), "maxUnavailable": "20%", "maxSurge": int64(0)}
	if diff := cmp.Diff(map[string]any{"type": "RollingUpdate", "rollingUpdate": rolling}, reviewtest.Field(hub, "spec", "updateStrategy")); diff != "" {
		t.Errorf("v1beta1 (-want +got):\n%s", diff)
	}
	if reviewtest.Field(hub, "spec", "scaleStrategy", "enablePVCReuse") != true {
		t.Error("claims are not reused")
	}
	policy := newSet(t, "v1beta1", namespace, `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceIfPossible"}}}`)
	if err := g.Client.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	if got := reviewtest.Field(policy, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable"); got != "20%" {
		t.Errorf("maxUnavailable %v", got)
	}
}

// testTemplate has templates judged and completed.
func testTemplate(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		wrong := newSet(t, version, namespace, `{"template":{"spec":{"containers":[{"name":"A b","image":"x"}]}}}`)
		refusedAt(t, g.Client.Create(t.Context(), wrong), "spec.template.spec.containers[0].name")
		claim := newSet(t, version, namespace, `{"volumeClaimTemplates":[{"metadata":{"name":"Not A Name"}}]}`)
		refusedAt(t, g.Client.Create(t.Context(), claim), "spec.volumeClaimTemplates[0].metadata.name")
		number := newSet(t, version, namespace, `{"template":{"spec":{"containers":7}}}`)
		if err := g.Client.Create(t.Context(), number); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "spec.template.spec.containers") {
			t.Errorf("containers are a number: %v", err)
		}

		set := newSet(t, version, namespace, `{"template":{"spec":{"fromTheFuture":{"n":1},"serviceAccountName":"x",
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

// testCalls counts what admissions cost.
func testCalls(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		set := newSet(t, version, namespace, "")
		cost := func(what string, want map[string]int, do func() error) {
			t.Helper()
			// A list has the API server's cache catch up. An update that goes by an older copy is reviewed twice.
			all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": set.GetAPIVersion(), "kind": "CloneSetList"}}
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
		cost("create", map[string]int{"create": 1}, func() error { return g.Client.Create(t.Context(), set) })
		cost("update beside the template", map[string]int{}, func() error {
			set.SetLabels(map[string]string{"a": "b"})
			_ = unstructured.SetNestedField(set.Object, int64(3), "spec", "replicas")
			return g.Client.Update(t.Context(), set)
		})
		cost("update of the template", map[string]int{"create": 1}, func() error {
			_ = unstructured.SetNestedField(set.Object, "b", "spec", "template", "metadata", "annotations", "a")
			return g.Client.Update(t.Context(), set)
		})
		cost("delete", map[string]int{}, func() error { return g.Client.Delete(t.Context(), set) })
	}
}
