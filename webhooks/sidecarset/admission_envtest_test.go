//go:build envtest

package sidecarset_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

// testRecorded gives the API server what users once gave to the reference: it becomes what the reference has stored,
// hashes included, and what the reference has stored stays as it is.
func testRecorded(t *testing.T, g *reviewtest.Ground) {
	for _, step := range []string{"1-created", "2-updating", "3-updated"} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			for _, recorded := range reviewtest.Recorded(t, step, "sidecarsets."+version+".yaml") {
				t.Run(step+"/"+version+"/"+recorded.GetName(), func(t *testing.T) {
					applied := &unstructured.Unstructured{}
					if err := json.Unmarshal([]byte(recorded.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"]),
						applied); err != nil {
						t.Fatal(err)
					}
					got, err := dry(t, g, applied)
					if err != nil {
						t.Fatal(err)
					}
					asRecorded(t, recorded, got)

					stored := newSet(t, version, recorded.GetName(), plaintest.Encode(t, recorded.Object["spec"]))
					if got, err = dry(t, g, stored); err != nil {
						t.Fatal(err)
					}
					asRecorded(t, recorded, got)
					same(t, "the spec", plaintest.Encode(t, recorded.Object["spec"]), plaintest.Encode(t, got.Object["spec"]))
				})
			}
		}
	}
}

// asRecorded compares containers, volumes and hashes, which look alike in both versions.
func asRecorded(t *testing.T, want, got *unstructured.Unstructured) {
	t.Helper()
	for _, key := range []string{kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey} {
		same(t, key, want.GetAnnotations()[key], got.GetAnnotations()[key])
	}
	for _, name := range []string{"containers", "initContainers", "volumes", "updateStrategy", "revisionHistoryLimit"} {
		same(t, name, plaintest.Encode(t, reviewtest.Field(want, "spec", name)),
			plaintest.Encode(t, reviewtest.Field(got, "spec", name)))
	}
}

// testManifests applies the manifests of the reference's API unchanged.
func testManifests(t *testing.T, g *reviewtest.Ground) {
	configure(t, g, `{"rules":[{"allowedAnnotationKeyExprs":["^mesh.example.com/"]}]}`)
	revision(t, g, "pinned-5d4f8c7b9", "pinned", "1.19")
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, set := range reviewtest.Manifests(t, version, "sidecarsets.yaml") {
			t.Run(version+"/"+set.GetName(), func(t *testing.T) {
				if _, err := dry(t, g, set); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// testMistakes has the schema say what is wrong, with the webhooks in front of it.
func testMistakes(t *testing.T, g *reviewtest.Ground) {
	for _, m := range reviewtest.Mistakes(t, "sidecarsets.yaml") {
		version := m.Version
		if version == "" {
			version = "v1beta1"
		}
		t.Run(m.Why, func(t *testing.T) {
			for _, set := range reviewtest.Manifests(t, version, "sidecarsets.yaml") {
				if set.GetName() != m.Manifest {
					continue
				}
				plaintest.Merge(set.Object, m.Patch)
				if _, err := dry(t, g, set); err == nil || !strings.Contains(err.Error(), m.Refusal) {
					t.Errorf("want %q, got %v", m.Refusal, err)
				}
			}
		})
	}
}

func testDefaults(t *testing.T, g *reviewtest.Ground) {
	// What is left open reads back, where containers are injected among it, and what the API server itself fills in.
	const (
		common = `"resources":{},"shareVolumePolicy":{"type":"disabled"},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","upgradeStrategy":{"upgradeType":"ColdUpgrade"}`
		full   = `{"containers":[{"image":"agent","imagePullPolicy":"Always","name":"agent","podInjectPolicy":"BeforeAppContainer",` +
			common + `}],` +
			`"initContainers":[{"image":"setup:1","imagePullPolicy":"IfNotPresent","name":"setup","podInjectPolicy":"AfterAppContainer",` +
			common + `}],` +
			`"injectionStrategy":{"revision":{"customVersion":"1","policy":"Always"}},"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"x"}},` +
			`"updateStrategy":{"maxUnavailable":1,"partition":0,"type":"RollingUpdate"},` +
			`"volumes":[{"downwardAPI":{"defaultMode":420,"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.labels"},"path":"l"}]},"name":"info"},{"emptyDir":{},"name":"tmp"}]}`
	)
	revision(t, g, "a-1", "a", "1")
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			// The items of the volume name no version of the API, as those of pods need not.
			got, err := dry(t, g,
				newSet(t, version, "a", `{"selector":{"matchLabels":{"app":"x"}},"containers":[{"name":"agent","image":"agent"}],
				"initContainers":[{"name":"setup","image":"setup:1","podInjectPolicy":""}],
				"injectionStrategy":{"revision":{"customVersion":"1"}},
				"volumes":[{"name":"info","downwardAPI":{"items":[{"path":"l","fieldRef":{"fieldPath":"metadata.labels"}}]}},{"name":"tmp"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "the spec", full, plaintest.Encode(t, got.Object["spec"]))
		})
	}
	t.Run("only init containers", func(t *testing.T) {
		got, err := dry(t, g, plain(t, "v1beta1", "a",
			`{"containers":null,"updateStrategy":{"type":"NotUpdate"},"initContainers":[{"name":"app","image":"a:1","restartPolicy":"Always","startupProbe":{"exec":{"command":["true"]}}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "containers", nil, reviewtest.Field(got, "spec", "containers"))
		probe := got.Object["spec"].(map[string]any)["initContainers"].([]any)[0].(map[string]any)["startupProbe"]
		same(t, "a new startup probe",
			`{"exec":{"command":["true"]},"failureThreshold":3,"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1}`,
			plaintest.Encode(t, probe))
	})
}

// testRefusals is what clients get for containers and volumes that the API server finds wrong.
func testRefusals(t *testing.T, g *reviewtest.Ground) {
	with := func(more string) string { return `{"containers":[{"name":"agent","image":"a:1",` + more + `}]}` }
	for name, c := range map[string]struct {
		spec, path string
		code       int32
	}{
		"unknown volume": {with(`"volumeMounts":[{"name":"x","mountPath":"/x"}]`), "spec.containers[0].volumeMounts[0].name", 422},
		"no image":       {`{"containers":[{"name":"agent"}]}`, "spec.containers[0].image", 422},
		"twice":          {`{"initContainers":[{"name":"agent","image":"a:1"}]}`, "spec.initContainers[0].name", 422},
		"odd volume":     {`{"volumes":[{"name":"A"}]}`, "spec.volumes[0].name", 422},
		"a wrong type":   {with(`"env":"x"`), "spec.containers.env", 400},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dry(t, g, plain(t, "v1beta1", "a", c.spec))
			reviewtest.Refused(t, err, c.code, c.path)
		})
	}
}

// testUpdates: pods that are there can get no other containers, so names and upgrade types stay; the rest may change.
func testUpdates(t *testing.T, g *reviewtest.Ground) {
	set := create(t, g, plain(t, "v1beta1", "updated", `{"selector":{"matchLabels":{"app":"updated"}}}`))
	cases := map[string]struct {
		patch string
		paths []string
		calls map[string]int
	}{
		"a label":    {`{"metadata":{"labels":{"a":"b"}}}`, nil, map[string]int{}},
		"a strategy": {`{"spec":{"updateStrategy":{"maxUnavailable":"50%"}}}`, nil, map[string]int{}},
		"an image":   {`{"spec":{"containers":[{"name":"agent","image":"a:2"}]}}`, nil, map[string]int{"create": 2}},
		"a name": {
			`{"spec":{"containers":[{"name":"agent","image":"a:1"},{"name":"b","image":"b:1"}]}}`,
			[]string{"spec.containers[1].name"},
			map[string]int{"create": 2},
		},
		"the type": {
			`{"spec":{"containers":[{"name":"agent","image":"a:1","upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"e"}}]}}`,
			[]string{"spec.containers[0].upgradeStrategy.upgradeType"},
			map[string]int{"create": 2},
		},
		"an init container": {`{"spec":{"initContainers":[{"name":"b","image":"b:1"}]}}`, nil, map[string]int{"create": 2}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			// A list has the API server's cache catch up. An update that goes by an older copy is reviewed twice.
			all := &unstructured.UnstructuredList{Object: map[string]any{
				"apiVersion": set.GetAPIVersion(), "kind": "SidecarSetList",
			}}
			err := g.Client.List(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}
			made := g.Calls.Of(func() {
				err = g.Client.Patch(t.Context(), set.DeepCopy(),
					client.RawPatch("application/merge-patch+json", []byte(c.patch)), client.DryRunAll)
			})
			same(t, "calls", c.calls, made)
			if c.paths == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			reviewtest.Refused(t, err, 422, c.paths...)
		})
	}
}

// testConflicts: with another set that the webhooks know, where a pod can have both. A canary and its base have the
// same containers, and both can be changed.
func testConflicts(t *testing.T, g *reviewtest.Ground) {
	base := create(t, g, plain(t, "v1beta1", "base", `{"selector":{"matchLabels":{"app":"shop"}}}`))
	_, err := dry(t, g, plain(t, "v1alpha1", "second", `{"selector":{"matchLabels":{"app":null,"tier":"x"}}}`))
	reviewtest.Refused(t, err, 422, "spec.containers[0].name")
	if _, err := dry(t, g, plain(t, "v1beta1", "second", `{"selector":{"matchLabels":{"app":"bank"}}}`)); err != nil {
		t.Errorf("they never meet: %v", err)
	}
	canary := plain(t, "v1beta1", "canary", `{"selector":{"matchLabels":{"app":"shop"}},"updateStrategy":{"type":"NotUpdate"}}`)
	canary.SetAnnotations(map[string]string{
		v1beta1.SidecarSetCanaryAnnotation: "true", v1beta1.SidecarSetBaseAnnotation: "base",
	})
	for _, set := range []*unstructured.Unstructured{base, create(t, g, canary)} {
		image := client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"containers":[{"name":"agent","image":"a:2"}]}}`))
		if err := g.Client.Patch(t.Context(), set.DeepCopy(), image, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", set.GetName(), err)
		}
	}
}

// revision stores one of a set, which ends with the test.
func revision(t *testing.T, g *reviewtest.Ground, name, of, version string) {
	t.Helper()
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: name, Labels: map[string]string{
			v1beta1.SidecarSetNameLabel: of, v1beta1.SidecarSetCustomVersionLabel: version,
		}},
		Revision: 1,
		Data: runtime.RawExtension{
			Raw: []byte(`{"spec":{"$patch":"replace","containers":[{"name":"agent","image":"a:0"}]}}`),
		},
	}
	if err := g.Client.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Client.Delete(context.WithoutCancel(t.Context()), r); err != nil {
			t.Error(err)
		}
	})
}
