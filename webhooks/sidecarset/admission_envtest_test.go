//go:build envtest

package sidecarset_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
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
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			if m.Version != "" && m.Version != version {
				continue
			}
			t.Run(m.Why+"/"+version, func(t *testing.T) {
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

// testRefusals is what clients get for an invalid set, in both versions: faults of the rules, whose tables are in the
// package validation, and of containers and volumes, which the API server finds.
func testRefusals(t *testing.T, g *reviewtest.Ground) {
	const policy = `"resourcesPolicy":{"targetContainersMode":"sum","targetContainersNameRegex":%q,"resourcesExpr":{"limits":{"cpu":%q}}}`
	with := func(more string) string { return `{"containers":[{"name":"agent","image":"a:1",` + more + `}]}` }
	cases := map[string]struct {
		spec  string
		paths []string
	}{
		"no selector": {`{"selector":null}`, []string{"spec.selector"}},
		"a bad formula": {
			with(fmt.Sprintf(policy, ".*", "cpu +*/ 50%")),
			[]string{"spec.containers[0].resourcesPolicy.resourcesExpr.limits.cpu"},
		},
		"native": {
			`{"initContainers":[{"name":"vault","image":"v:1","restartPolicy":"Always"}],"updateStrategy":{"type":"NotUpdate"}}`,
			nil,
		},
		"unknown volume": {
			with(`"volumeMounts":[{"name":"x","mountPath":"/x"}]`), []string{"spec.containers[0].volumeMounts[0].name"},
		},
		"no image":   {`{"containers":[{"name":"agent"}]}`, []string{"spec.containers[0].image"}},
		"twice":      {`{"initContainers":[{"name":"agent","image":"a:1"}]}`, []string{"spec.initContainers[0].name"}},
		"odd volume": {`{"volumes":[{"name":"A"}]}`, []string{"spec.volumes[0].name"}},
		"no formulas": {
			with(`"resourcesPolicy":{"targetContainersMode":"sum","resourcesExpr":{}}`),
			[]string{"spec.containers[0].resourcesPolicy.resourcesExpr"},
		},
	}
	for name, c := range cases {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				_, err := dry(t, g, plain(t, version, "a", c.spec))
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
	t.Run("a wrong type", func(t *testing.T) {
		_, err := dry(t, g, plain(t, "v1beta1", "a", with(`"env":"x"`)))
		reviewtest.Refused(t, err, 400, "spec.containers.env")
	})
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

// testHashes: what clients send in their place counts for nothing, and neither does a plain init container, which no
// update reaches.
func testHashes(t *testing.T, g *reviewtest.Ground) {
	set := create(t, g, plain(t, "v1beta1", "hashed",
		`{"selector":{"matchLabels":{"app":"hashed"}},"initContainers":[{"name":"setup","image":"s:1"}]}`))
	key, bare := kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey
	was := set.GetAnnotations()
	if was[key] == "" || was[bare] == "" {
		t.Fatalf("it has no hashes: %v", was)
	}
	cases := map[string]struct {
		why, patch         string
		sameHash, sameBare bool
	}{
		"stale": {
			why:      "they are replaced",
			patch:    `{"metadata":{"annotations":{"kruise.io/sidecarset-hash":"stale","kruise.io/sidecarset-hash-without-image":""}}}`,
			sameHash: true, sameBare: true,
		},
		"none": {"they are written again", `{"metadata":{"annotations":null}}`, true, true},
		"an image": {
			why:      "one of the two is of images",
			patch:    `{"spec":{"containers":[{"name":"agent","image":"a:2"}]}}`,
			sameBare: true,
		},
		"an init image": {"it does not count", `{"spec":{"initContainers":[{"name":"setup","image":"s:2"}]}}`, true, true},
		"a variable": {
			why: "it counts for both", patch: `{"spec":{"containers":[{"name":"agent","image":"a:1","env":[{"name":"A"}]}]}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := set.DeepCopy()
			if err := g.Client.Patch(t.Context(), now,
				client.RawPatch("application/merge-patch+json", []byte(c.patch)), client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			is := now.GetAnnotations()
			if (is[key] == was[key]) != c.sameHash || (is[bare] == was[bare]) != c.sameBare || is[key] == "" || is[bare] == "" {
				t.Errorf("%s: was %v, is %v", c.why, was, is)
			}
		})
	}
}

// testConflicts: with other sets, where a pod can have both.
func testConflicts(t *testing.T, g *reviewtest.Ground) {
	create(t, g, plain(t, "v1beta1", "first",
		`{"selector":{"matchLabels":{"app":"shop"}},"namespaceSelector":{"matchLabels":{"team":"blue"}},
		"containers":[{"name":"agent","image":"a:1","upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"e"}}],"volumes":[{"name":"v","emptyDir":{}}]}`))
	cases := map[string]struct {
		why, version, spec string
		paths              []string
	}{
		"the same name": {
			why:     "in the same pods",
			version: "v1beta1",
			spec:    `{"selector":{"matchLabels":{"app":"shop"}}}`,
			paths:   []string{"spec.containers[0].name"},
		},
		"other pods": {"they never meet", "v1beta1", `{"selector":{"matchLabels":{"app":"bank"}}}`, nil},
		"an unrelated key": {
			why:     "a pod can have both labels",
			version: "v1beta1",
			spec:    `{"selector":{"matchLabels":{"app":null,"tier":"x"}}}`,
			paths:   []string{"spec.containers[0].name"},
		},
		"exists": {
			why:     "a pod can have it too",
			version: "v1alpha1",
			spec:    `{"selector":{"matchLabels":null,"matchExpressions":[{"key":"tier","operator":"Exists"}]}}`,
			paths:   []string{"spec.containers[0].name"},
		},
		"absent": {
			why:     "the others have it",
			version: "v1beta1",
			spec:    `{"selector":{"matchLabels":null,"matchExpressions":[{"key":"app","operator":"DoesNotExist"}]}}`,
		},
		"other namespaces": {
			why:     "they never meet",
			version: "v1beta1",
			spec:    `{"selector":{"matchLabels":{"app":"shop"}},"namespaceSelector":{"matchLabels":{"team":"red"}}}`,
		},
		"a namespace": {
			why:     "it can have the label",
			version: "v1alpha1",
			spec:    `{"selector":{"matchLabels":{"app":"shop"}},"namespace":"shop"}`,
			paths:   []string{"spec.containers[0].name"},
		},
		"half of a pair": {
			why:     "that name is in the pod",
			version: "v1beta1",
			spec:    `{"selector":{"matchLabels":{"app":"shop"}},"containers":[{"name":"agent-2","image":"a:1"}]}`,
			paths:   []string{"spec.containers[0].name"},
		},
		"another volume": {
			why: "of the same name", version: "v1beta1",
			spec:  `{"selector":{"matchLabels":{"app":"shop"}},"containers":[{"name":"b","image":"b:1"}],"volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}]}`,
			paths: []string{"spec.volumes[0]"},
		},
		"the same volume": {
			why: "it does no harm", version: "v1beta1",
			spec: `{"selector":{"matchLabels":{"app":"shop"}},"containers":[{"name":"b","image":"b:1"}],"volumes":[{"name":"v"}]}`,
		},
		"an init container": {
			why: "a pod has a name once", version: "v1beta1",
			spec:  `{"selector":{"matchLabels":{"app":"shop"}},"containers":null,"initContainers":[{"name":"agent-1","image":"b:1"}]}`,
			paths: []string{"spec.initContainers[0].name"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := dry(t, g, plain(t, c.version, "second", c.spec))
			if c.paths == nil {
				if err != nil {
					t.Errorf("%s: %v", c.why, err)
				}
				return
			}
			reviewtest.Refused(t, err, 422, c.paths...)
		})
	}
}

// testCanary: a canary and its base have the same containers, and both can be changed.
func testCanary(t *testing.T, g *reviewtest.Ground) {
	base := create(t, g, plain(t, "v1beta1", "base", `{"selector":{"matchLabels":{"app":"canaried"}}}`))
	annotated := func(name, of, spec string) *unstructured.Unstructured {
		set := plain(t, "v1beta1", name, spec)
		set.SetAnnotations(map[string]string{
			v1beta1.SidecarSetCanaryAnnotation: "true", v1beta1.SidecarSetBaseAnnotation: of,
		})
		return set
	}
	const at = "metadata.annotations[apps.kruise.io/sidecarset-base]"
	const notUpdate = `{"selector":{"matchLabels":{"app":"canaried"}},"updateStrategy":{"type":"NotUpdate"}}`
	_, err := dry(t, g, annotated("c", "nobody", notUpdate))
	reviewtest.Refused(t, err, 422, at)
	_, err = dry(t, g, annotated("c", "c", notUpdate))
	reviewtest.Refused(t, err, 422, at)
	_, err = dry(t, g, annotated("c", "base", `{"selector":{"matchLabels":{"app":"canaried"}}}`))
	reviewtest.Refused(t, err, 422, "spec.updateStrategy.type")

	canary := create(t, g, annotated("canary", "base", notUpdate))
	_, err = dry(t, g,
		annotated("c", "canary", `{"selector":{"matchLabels":{"app":"other"}},"updateStrategy":{"type":"NotUpdate"}}`))
	reviewtest.Refused(t, err, 422, at)
	patch := func(set *unstructured.Unstructured, patch string) error {
		return g.Client.Patch(t.Context(), set.DeepCopy(),
			client.RawPatch("application/merge-patch+json", []byte(patch)), client.DryRunAll)
	}
	reviewtest.Refused(t, patch(canary, `{"metadata":{"annotations":{"`+v1beta1.SidecarSetBaseAnnotation+`":"first"}}}`),
		422, at, at)
	for _, set := range []*unstructured.Unstructured{base, canary} {
		if err := patch(set, `{"spec":{"containers":[{"name":"agent","image":"a:2"}]}}`); err != nil {
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

func testRevisions(t *testing.T, g *reviewtest.Ground) {
	revision(t, g, "pinned-1", "pinned", "v1")
	revision(t, g, "other-1", "other", "v2")
	const at = "spec.injectionStrategy.revision"
	cases := map[string]struct {
		pin   string
		paths []string
	}{
		"by name":         {`{"revisionName":"pinned-1"}`, nil},
		"by version":      {`{"customVersion":"v1","policy":"Partial"}`, nil},
		"by nothing":      {`{}`, []string{at}},
		"no such name":    {`{"revisionName":"pinned-2"}`, []string{at}},
		"an empty name":   {`{"revisionName":""}`, []string{at}},
		"no such version": {`{"customVersion":"v2"}`, []string{at}},
		"another set's":   {`{"revisionName":"other-1"}`, []string{at}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := dry(t, g, plain(t, "v1beta1", "pinned", `{"injectionStrategy":{"revision":`+c.pin+`}}`))
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

// testAnnotations: a set can write annotations of pods only where a rule allows that, or an option allows all.
func testAnnotations(t *testing.T, g *reviewtest.Ground) {
	const at = "spec.patchPodMetadata"
	write := func() error {
		set := plain(t, "v1beta1", "a", `{"patchPodMetadata":[{"annotations":{"example.com/k":"v"}}]}`)
		set.SetLabels(map[string]string{"team": "blue"})
		_, err := dry(t, g, set)
		return err
	}
	t.Run("no rules", func(t *testing.T) { reviewtest.Refused(t, write(), 422, at) })
	for name, c := range map[string]struct {
		rules string
		paths []string
	}{
		"for all": {`{"rules":[{"allowedAnnotationKeyExprs":["^example"]}]}`, nil},
		"for such": {
			`{"rules":[{"selector":{"matchLabels":{"team":"blue"}},"allowedAnnotationKeyExprs":["k$"]}]}`, nil,
		},
		"for others": {
			`{"rules":[{"selector":{"matchLabels":{"team":"red"}},"allowedAnnotationKeyExprs":["k$"]}]}`, []string{at},
		},
		"other keys":      {`{"rules":[{"allowedAnnotationKeyExprs":["^other"]}]}`, []string{at}},
		"a misspelt rule": {`{"rules":[{"allowedAnnotationKeyExpr":["k$"]}]}`, []string{at}},
		"no JSON":         {`{`, []string{at}},
		"a bad regex":     {`{"rules":[{"allowedAnnotationKeyExprs":["("]}]}`, []string{at}},
		"a bad selector":  {`{"rules":[{"selector":{"matchExpressions":[{"key":"a","operator":"Odd"}]}}]}`, []string{at}},
	} {
		t.Run(name, func(t *testing.T) {
			configure(t, g, c.rules)
			if err := write(); c.paths != nil {
				reviewtest.Refused(t, err, 422, c.paths...)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	g.Serve(t, serve(sidecarset.Options{Namespace: own, AnyPodMetadata: true}))
	t.Run("gate", func(t *testing.T) {
		if err := write(); err != nil {
			t.Error(err)
		}
		configure(t, g, `{"rules":[{"allowedAnnotationKeyExprs":["^other"]}]}`)
		reviewtest.Refused(t, write(), 422, at)
	})
}
