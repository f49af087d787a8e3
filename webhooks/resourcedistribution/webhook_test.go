package resourcedistribution_test

import (
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/resourcedistribution"
)

const secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","namespace":"ignored"},
	"stringData":{"user":"reader"}}`

// What exactly is invalid is tested in package distribution.
func TestValidate(t *testing.T) {
	of := func(resource, targets string) string {
		return `{"metadata":{"name":"a"},"spec":{"resource":` + resource + `,"targets":{` + targets + `}}}`
	}
	good, own := of(secret, ``), `"includedNamespaces":{"list":[{"name":"kruise-system"}]}`
	old, hub := plaintest.Versions()[:1], plaintest.Versions()[1:]
	for name, c := range map[string]struct {
		why, now, stored string
		versions         []string
		off              bool
		want             plaintest.Want
	}{
		"good": {why: "empty targets are accepted", now: good},
		"a selector": {
			why: "its name in v1beta1", versions: hub, now: of(secret, `"namespaceSelector":{"matchLabels":{"a b":"c"}}`),
			want: plaintest.Want{Code: 422, Paths: "spec.targets.namespaceSelector"},
		},
		"an older one": {
			why: "its name in v1alpha1", versions: old, now: of(secret, `"namespaceLabelSelector":{"matchLabels":{"a b":"c"}}`),
			want: plaintest.Want{Code: 422, Paths: "spec.targets.namespaceSelector"},
		},
		"three faults": {
			why: "all are reported at once", now: of(`{}`, `"includedNamespaces":{"list":[{"name":"INVALID"},{"name":"a"}]},
				"excludedNamespaces":{"list":[{"name":"a"}]}`),
			want: plaintest.Want{Code: 422, Paths: "spec.resource spec.targets.includedNamespaces spec.targets"},
		},
		"off": {
			why: "nothing would be distributed", now: good, off: true,
			want: plaintest.Want{Code: 403, Text: "feature gate ResourceDistributionGate is off: nothing would be distributed"},
		},
		"data and targets": {
			why: "they can change", now: strings.Replace(of(secret, `"allNamespaces":true`), "reader", "writer", 1),
			stored: good,
		},
		"another name": {
			why: "the copies would stay", now: strings.Replace(good, `"pull"`, `"push"`, 1), stored: good,
			want: plaintest.Want{Code: 422, Paths: "spec.resource"},
		},
		"another kind": {
			why: "the copies would stay", stored: good, want: plaintest.Want{Code: 422, Paths: "spec.resource"},
			now: strings.Replace(strings.Replace(good, "Secret", "ConfigMap", 1), "stringData", "data", 1),
		},
		"a mended kind": {
			why: "what could not work can be mended", now: good, stored: of(`{"apiVersion":"apps/v1","kind":"Deployment"}`, ``),
		},
		"the manager's own": {
			why: "the configuration of the manager is there", now: of(secret, own),
			want: plaintest.Want{Code: 422, Paths: "spec.targets.includedNamespaces"},
		},
		"all but the manager's": {why: "it is skipped", now: of(secret, `"allNamespaces":true`)},
		"without the manager's": {
			why: "it may be excluded",
			now: of(secret, `"allNamespaces":true,"excludedNamespaces":{"list":[{"name":"kruise-system"}]}`),
		},
		"a stored one": {
			why: "it is a warning: the copy is not written any more", stored: of(secret, own),
			now: of(secret, strings.Replace(own, "]", `,{"name":"a"}]`, 1)), want: plaintest.Want{Warnings: 1},
		},
	} {
		if c.versions == nil {
			c.versions = plaintest.Versions()
		}
		for _, version := range c.versions {
			t.Run(name+"/"+version, func(t *testing.T) {
				w, err := resourcedistribution.New(resourcedistribution.Options{On: !c.off, Namespace: "kruise-system"})
				if err != nil {
					t.Fatal(err)
				}
				r := plaintest.Request(plaintest.Kind("ResourceDistribution"), version, c.now, c.stored)
				got := w[resourcedistribution.Path](t.Context(), r)
				plaintest.Answers(t, c.why, c.want, got)
				if got.Result != nil && strings.Contains(got.Result.Message, "reader") {
					t.Errorf("the answer has a value of the Secret: %s", got.Result.Message)
				}
			})
		}
	}
}
