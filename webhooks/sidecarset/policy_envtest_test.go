//go:build envtest

package sidecarset_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

// testPolicy takes the webhooks away and installs the policy, which judges as they do.
func testPolicy(t *testing.T, g *reviewtest.Ground) {
	stored := create(t, g, plain(t, "v1beta1", "stored", `{"selector":{"matchLabels":{"app":"stored"}}}`))
	odd := create(t, g, plain(t, "v1beta1", "odd",
		`{"selector":{"matchLabels":{"app":"odd"}},"containers":[{"name":"agent","image":"a:1","upgradeStrategy":{"upgradeType":"Odd"}}]}`))
	if out, err := g.Kubectl(t.Context(), "apply", "-f",
		filepath.Join("..", "..", "config", "webhook", "sidecarset-policy.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.Withdraw(t)
	reviewtest.Until(t, "the API server does not mind the policy alone", func(ctx context.Context) error {
		set := plain(t, "v1beta1", "a", `{}`)
		if err := g.Client.Create(ctx, set, client.DryRunAll); err != nil {
			return err
		}
		if len(set.GetAnnotations()) > 0 {
			return errors.New("the set has hashes")
		}
		if err := g.Client.Create(ctx, newSet(t, "v1beta1", "a", `{}`), client.DryRunAll); err == nil {
			return errors.New("a set of nothing is let in")
		}
		return nil
	})
	judgeAll(t, g, stored, odd)
}

// judgeAll expects refusals by the policy, each for its reason.
func judgeAll(t *testing.T, g *reviewtest.Ground, stored, odd *unstructured.Unstructured) {
	const (
		judge  = "kruisekit-sidecarset"
		native = `"initContainers":[{"name":"n","image":"n:1","restartPolicy":"Always"}]`
		policy = `"resourcesPolicy":{"targetContainersMode":"sum","targetContainersNameRegex":".*","resourcesExpr":{"limits":{"cpu":"cpu"}}}`
	)
	create := map[string]struct{ spec, want string }{
		"good":                {`{}`, ""},
		"good strategy":       {`{"updateStrategy":{"partition":"10%","maxUnavailable":0}}`, ""},
		"no selector":         {`{"selector":null}`, "spec.selector"},
		"empty selector":      {`{"selector":{"matchLabels":null}}`, "spec.selector"},
		"empty namespaces":    {`{"namespaceSelector":{}}`, "spec.namespaceSelector"},
		"no containers":       {`{"containers":null}`, "spec: "},
		"unnamed revision":    {`{"injectionStrategy":{"revision":{}}}`, "spec.injectionStrategy.revision"},
		"native, rolling":     {`{` + native + `}`, "spec.updateStrategy"},
		"native, not updated": {`{` + native + `,"updateStrategy":{"type":"NotUpdate"}}`, ""},
		"both": {
			`{"updateStrategy":{"partition":"0%","selector":{"matchLabels":{"a":"b"}}}}`, "spec.updateStrategy",
		},
		"none of both":       {`{"updateStrategy":{"partition":0,"selector":{"matchLabels":{"a":"b"}}}}`, ""},
		"negative":           {`{"updateStrategy":{"partition":-1}}`, "partition"},
		"a fraction":         {`{"updateStrategy":{"maxUnavailable":"33.3%"}}`, "maxUnavailable"},
		"odd type, negative": {`{"updateStrategy":{"type":"Odd","partition":-1}}`, ""},
		"odd place":          {`{"containers":[{"name":"a","image":"a:1","podInjectPolicy":"Odd"}]}`, "podInjectPolicy"},
		"two resources": {
			`{"containers":[{"name":"a","image":"a:1","resources":{"limits":{"cpu":"1"}},` + policy + `}]}`, "resourcesPolicy",
		},
		"one resources": {`{"containers":[{"name":"a","image":"a:1",` + policy + `}]}`, ""},
		"a plain init":  {`{"initContainers":[{"name":"i","image":"a:1",` + policy + `}]}`, "resourcesPolicy"},
	}
	for name, c := range create {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				_, err := dry(t, g, plain(t, version, "a", c.spec))
				if err := reviewtest.Says(err, judge, c.want); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for name, base := range map[string]string{"of itself": "a", "rolling": "stored"} {
		t.Run("canary "+name, func(t *testing.T) {
			set := plain(t, "v1beta1", "a", map[string]string{
				"of itself": `{"updateStrategy":{"type":"NotUpdate"}}`, "rolling": `{}`,
			}[name])
			set.SetAnnotations(map[string]string{
				v1beta1.SidecarSetCanaryAnnotation: "true", v1beta1.SidecarSetBaseAnnotation: base,
			})
			_, err := dry(t, g, set)
			if err := reviewtest.Says(err, judge, map[string]string{
				"of itself": "metadata.annotations", "rolling": "spec.updateStrategy.type",
			}[name]); err != nil {
				t.Error(err)
			}
		})
	}
	const hot = `{"spec":{"containers":[{"name":"agent","image":"a:1","upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"e"}}]}}`
	if err := reviewtest.Says(g.Client.Patch(t.Context(), odd.DeepCopy(),
		client.RawPatch("application/merge-patch+json", []byte(hot)), client.DryRunAll), judge, ""); err != nil {
		t.Errorf("a type that nobody knows: %v", err)
	}
	for name, c := range map[string]struct{ patch, want string }{
		"an image": {
			`{"spec":{"containers":[{"name":"agent","image":"a:2","upgradeStrategy":{"upgradeType":"ColdUpgrade"}}]}}`, "",
		},
		"another name": {`{"spec":{"containers":[{"name":"b","image":"a:1"}]}}`, "spec.containers"},
		"another type": {hot, "upgradeType"},
		"no selector":  {`{"spec":{"selector":null}}`, "spec.selector"},
		"a label":      {`{"metadata":{"labels":{"a":"b"}}}`, ""},
	} {
		t.Run("update/"+name, func(t *testing.T) {
			if err := reviewtest.Says(g.Client.Patch(t.Context(), stored.DeepCopy(),
				client.RawPatch("application/merge-patch+json", []byte(c.patch)), client.DryRunAll), judge, c.want); err != nil {
				t.Error(err)
			}
		})
	}
}
