package sidecarset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// TestRelated: what a new set asks of other objects: its revision, its base, and the rules for annotations.
func TestRelated(t *testing.T) {
	const (
		revision    = "spec.injectionStrategy.revision: FieldValueInvalid"
		annotations = "spec.patchPodMetadata: FieldValueRequired"
		base        = "metadata.annotations[apps.kruise.io/sidecarset-base]: "
		others      = `{"rules":[{"allowedAnnotationKeyExprs":["^other"]}]}`
	)
	pinned := func(pin string) string { return object(t, "v1beta1", `{"injectionStrategy":{"revision":`+pin+`}}`) }
	named := func(name, meta, spec string) string {
		return strings.Replace(object(t, "v1beta1", spec), `"name":"a","uid":"1"`, `"name":"`+name+`",`+meta, 1)
	}
	write := named("a", `"labels":{"team":"blue"}`, `{"patchPodMetadata":[{"annotations":{"example.com/k":"v"}}]}`)
	canary := func(of string) string {
		return named("a", `"annotations":{"apps.kruise.io/sidecarset-canary":"true","apps.kruise.io/sidecarset-base":"`+of+`"}`,
			`{"updateStrategy":{"type":"NotUpdate"}}`)
	}
	sets := []string{
		named("base", `"uid":"2"`, `{}`),
		named("canary", `"annotations":{"apps.kruise.io/sidecarset-canary":"true"}`, `{"selector":{"matchLabels":{"app":"y"}}}`),
	}
	for name, c := range map[string]struct {
		set, rules string
		any        bool
		want       string
	}{
		"by name":         {set: pinned(`{"revisionName":"a-1"}`)},
		"by version":      {set: pinned(`{"customVersion":"v1","policy":"Partial"}`)},
		"no such name":    {set: pinned(`{"revisionName":"a-2"}`), want: revision},
		"an empty name":   {set: pinned(`{"revisionName":""}`), want: revision},
		"no such version": {set: pinned(`{"customVersion":"v2"}`), want: revision},
		"another set's":   {set: pinned(`{"revisionName":"other-1"}`), want: revision},

		"of a base":    {set: canary("base")},
		"of nobody":    {set: canary("nobody"), want: base + "FieldValueNotFound"},
		"of itself":    {set: canary("a"), want: base + "FieldValueInvalid"},
		"of a canary":  {set: canary("canary"), want: base + "FieldValueInvalid"},
		"no rules":     {set: write, want: annotations},
		"no rules yet": {set: write, any: true},
		"for all":      {set: write, rules: `{"rules":[{"allowedAnnotationKeyExprs":["^example"]}]}`},
		"for such": {
			set: write, rules: `{"rules":[{"selector":{"matchLabels":{"team":"blue"}},"allowedAnnotationKeyExprs":["k$"]}]}`,
		},
		"for others": {
			set: write, rules: `{"rules":[{"selector":{"matchLabels":{"team":"red"}},"allowedAnnotationKeyExprs":["k$"]}]}`,
			want: annotations,
		},
		"other keys":       {set: write, rules: others, want: annotations},
		"other keys alone": {set: write, rules: others, any: true, want: annotations},
		"a misspelt rule":  {set: write, rules: `{"rules":[{"allowedAnnotationKeyExpr":["k$"]}]}`, want: annotations},
		"no JSON":          {set: write, rules: `{`, want: annotations},
		"a bad regex":      {set: write, rules: `{"rules":[{"allowedAnnotationKeyExprs":["("]}]}`, want: annotations},
		"a bad selector": {
			set: write, rules: `{"rules":[{"selector":{"matchExpressions":[{"key":"a","operator":"Odd"}]}}]}`, want: annotations,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &plainServer{rules: c.rules}
			if strings.Contains(c.set, "sidecarset-canary") { // others would be in conflict with the base
				server.others = sets
			}
			answer := newWebhooks(t, server, sidecarset.Options{AnyPodMetadata: c.any})[sidecarset.ValidatePath](t.Context(),
				newRequest("v1beta1", c.set, ""))
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if diff := cmp.Diff(want, plaintest.Causes(answer)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", answer.Result, diff)
			}
		})
	}
}
