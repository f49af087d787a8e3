package sidecarset_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// TestUnknownFields: what is misspelt is let in with a warning, and costs a call only where it is.
func TestUnknownFields(t *testing.T) {
	const (
		path  = "template.spec.containers[0].comand"
		told  = `unknown field "spec.containers[0].comand"`
		typo  = `{"containers":[{"name":"agent","image":"a:1","comand":["a"]}]}`
		wrong = `{"containers":[{"name":"agent","image":"a:1","comand":["a"]}],"customVersion":"a b"}`
	)
	cases := map[string]struct {
		why, now, stored string
		unknown          []string
		allowed          bool
		want             []string
		calls            int
	}{
		"none":           {"one call for the containers, one for conflicts", `{}`, "", nil, true, nil, 2},
		"a new set":      {"it is let in", typo, "", []string{path}, true, []string{told}, 3},
		"a changed one":  {"it is let in", typo, `{}`, []string{path}, true, []string{told}, 2},
		"one that stays": {"nobody looks at it", typo, typo, []string{path}, true, nil, 0},
		"with a fault":   {"both are reported", wrong, "", []string{path}, false, []string{told}, 2},
	}
	for name, c := range cases {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				if c.now == wrong && version == "v1alpha1" {
					t.Skip("its custom version is a label")
				}
				server, stored := &plainServer{unknown: c.unknown}, ""
				if c.stored != "" {
					stored = object(t, version, c.stored)
				}
				answer := newWebhooks(t, server, sidecarset.Options{})[sidecarset.ValidatePath](t.Context(),
					newRequest(version, object(t, version, c.now), stored))
				if diff := cmp.Diff(c.want, answer.Warnings); diff != "" || answer.Allowed != c.allowed || server.calls != c.calls {
					t.Errorf("%s: allowed %t, %d calls: %v, warnings (-want +got):\n%s",
						c.why, answer.Allowed, server.calls, answer.Result, diff)
				}
			})
		}
	}
	server := &plainServer{unknown: []string{path}}
	if answer := newWebhooks(t, server, sidecarset.Options{})[sidecarset.MutatePath](t.Context(),
		newRequest("v1beta1", object(t, "v1beta1", typo), "")); !answer.Allowed || server.calls != 1 {
		t.Errorf("the defaults: %d calls, %v", server.calls, answer.Result)
	}
}

// TestTwoNamespaces: in v1alpha1 a name goes before labels, which then do nothing.
func TestTwoNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		version, patch string
		warned         bool
	}{
		"both":         {"v1alpha1", `{"namespace":"n","namespaceSelector":{"matchLabels":{"a":"b"}}}`, true},
		"empty labels": {"v1alpha1", `{"namespace":"n","namespaceSelector":{}}`, true},
		"a name":       {"v1alpha1", `{"namespace":"n"}`, false},
		"no name":      {"v1alpha1", `{"namespace":"","namespaceSelector":{"matchLabels":{"a":"b"}}}`, false},
		"no such name": {"v1beta1", `{"namespace":"n","namespaceSelector":{"matchLabels":{"a":"b"}}}`, false},
	} {
		answer := newWebhooks(t, &plainServer{}, sidecarset.Options{})[sidecarset.ValidatePath](t.Context(),
			newRequest(c.version, object(t, c.version, c.patch), ""))
		if warned := slices.Contains(answer.Warnings,
			"spec.namespaceSelector: does nothing, as spec.namespace goes before it"); warned != c.warned || !answer.Allowed {
			t.Errorf("%s: %q, %v", name, answer.Warnings, answer.Result)
		}
	}
}
