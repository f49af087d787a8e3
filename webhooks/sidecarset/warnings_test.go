package sidecarset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

func TestWarnings(t *testing.T) {
	set := newObject(t, `{"updateStrategy":{"type":"Odd"},"patchPodMetadata":[{"patchPolicy":"Odd"},{"patchPolicy":"Retain"}]}`)
	set.Annotations = map[string]string{v1beta1.SidecarSetCanaryAnnotation: "true"}
	if got := sidecarset.Warnings(set); len(got) != 3 {
		t.Errorf("want three, got %q", got)
	}
	for typed, want := range map[string][]string{
		"Odd": {
			`spec.updateStrategy.type: "Odd" is unknown, and works as RollingUpdate`,
			"spec.updateStrategy.partition: Invalid value: -1: must not be negative",
			`spec.updateStrategy.maxUnavailable: Invalid value: "some": must be a number, or a percentage as 20%`,
		},
		"RollingUpdate": nil, "NotUpdate": nil,
	} {
		if diff := cmp.Diff(want, sidecarset.Warnings(newObject(t, `{"updateStrategy":{"type":"`+typed+`","partition":-1,"maxUnavailable":"some"}}`))); diff != "" {
			t.Errorf("what is refused of RollingUpdate, %s bears (-want +got):\n%s", typed, diff)
		}
	}
	for _, zero := range []string{`0`, `"0%"`} {
		if got := sidecarset.Warnings(newObject(t, `{"updateStrategy":{"maxUnavailable":`+zero+`}}`)); len(got) != 1 {
			t.Errorf("%s: no pod would ever be updated: %q", zero, got)
		}
	}
	if got := sidecarset.Warnings(newObject(t, `{"containers":[{"name":"a","image":"e:1","upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"e:1"}}]}`)); len(got) != 1 {
		t.Errorf("the old container would work for ever: %q", got)
	}
	if got := sidecarset.Warnings(newObject(t, `{"patchPodMetadata":[{"annotations":{"a":"b","kruise.io/sidecarset-injected-list":"c"}}]}`)); len(got) != 1 {
		t.Errorf("what pods record is not written: %q", got)
	}
	for _, container := range []string{`"containers":[`, `"initContainers":[`} {
		got := sidecarset.Warnings(newObject(t, `{`+container+`{"name":"a","upgradeStrategy":{"upgradeType":"HotUpgarde"}}]}`))
		if len(got) != 1 || !strings.Contains(got[0], `ontainers[0].upgradeStrategy.upgradeType: "HotUpgarde" is unknown, and works as ColdUpgrade`) {
			t.Errorf("it is never two: %q", got)
		}
	}
	if got := sidecarset.Warnings(newObject(t, `{"updateStrategy":{"maxUnavailable":"1%"},"containers":[{"name":"a","upgradeStrategy":{"upgradeType":"ColdUpgrade"}}]}`)); got != nil {
		t.Errorf("there is nothing to warn of: %q", got)
	}
}

// TestFailurePolicy: a set that its owner means to allow to be missing, and does not.
func TestFailurePolicy(t *testing.T) {
	for value, want := range map[string][]string{
		"": nil, "Fail": nil, "Ignore": nil,
		"ignore": {`metadata.annotations[kruisekit.dev/injection-failure-policy]: "ignore" is unknown, and works as Fail`},
	} {
		set := newObject(t, `{}`)
		set.Annotations = map[string]string{v1beta1.SidecarSetInjectionFailurePolicyAnnotation: value}
		if diff := cmp.Diff(want, sidecarset.Warnings(set)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
	}
}

// TestNearlyEveryPod: pods that somebody forgot to exclude are likely meant the least.
func TestNearlyEveryPod(t *testing.T) {
	const not, without = `{"key":"a","operator":"NotIn","values":["b"]}`, `{"key":"c","operator":"DoesNotExist"}`
	selector := func(labels string, expressions ...string) string {
		return `"selector":{"matchLabels":` + labels + `,"matchExpressions":[` + strings.Join(expressions, ",") + `]}`
	}
	for name, c := range map[string]struct {
		why, patch string
		warned     bool
	}{
		"labels":           {"they are asked for", `{}`, false},
		"labels and not":   {"they are asked for", `{` + selector(`{"d":"e"}`, not) + `}`, false},
		"not":              {"nothing is asked for", `{` + selector("null", not, without) + `}`, true},
		"a key and not":    {"it is asked for", `{` + selector("null", not, `{"key":"d","operator":"Exists"}`) + `}`, false},
		"some namespaces":  {"they are asked for", `{` + selector("null", not) + `,"namespaceSelector":{"matchLabels":{"d":"e"}}}`, false},
		"other namespaces": {"nothing is asked for", `{` + selector("null", not) + `,"namespaceSelector":{"matchExpressions":[` + without + `]}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.warned {
				want = []string{"spec.selector: says only what pods are not, and selects nearly every pod"}
			}
			if diff := cmp.Diff(want, sidecarset.Warnings(newObject(t, c.patch))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

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
		"with a fault":   {"both are told", wrong, "", []string{path}, false, []string{told}, 2},
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
				answer := newWebhooks(t, server, sidecarset.Options{}).Validate(t.Context(), newRequest(version, object(t, version, c.now), stored))
				if diff := cmp.Diff(c.want, answer.Warnings); diff != "" || answer.Allowed != c.allowed || server.calls != c.calls {
					t.Errorf("%s: allowed %t, %d calls: %v, warnings (-want +got):\n%s", c.why, answer.Allowed, server.calls, answer.Result, diff)
				}
			})
		}
	}
	server := &plainServer{unknown: []string{path}}
	if answer := newWebhooks(t, server, sidecarset.Options{}).Mutate(t.Context(), newRequest("v1beta1", object(t, "v1beta1", typo), "")); !answer.Allowed || server.calls != 1 {
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
		answer := newWebhooks(t, &plainServer{}, sidecarset.Options{}).Validate(t.Context(), newRequest(c.version, object(t, c.version, c.patch), ""))
		if warned := slices.Contains(answer.Warnings, "spec.namespaceSelector: does nothing, as spec.namespace goes before it"); warned != c.warned || !answer.Allowed {
			t.Errorf("%s: %q, %v", name, answer.Warnings, answer.Result)
		}
	}
}
