package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

// rolling wraps a patch of the block of rolling updates.
func rolling(patch string) string {
	return `{"updateStrategy":{"rollingUpdate":` + patch + `}}`
}

// ruleCase is a spec, given as a patch of a plain one, and the faults that it has as "path: type".
type ruleCase struct {
	why, patch string
	want       []string
}

func TestCloneSet(t *testing.T) {
	const at = "spec.updateStrategy.rollingUpdate."
	cases := map[string]ruleCase{
		"nothing but the required": {"the defaults are sound", ``, nil},
		"negative replicas":        {"there is no such number", `{"replicas":-1}`, []string{"spec.replicas: Invalid value"}},
		"no selector":              {"it is required", `{"selector":null}`, []string{"spec.selector: Required value"}},
		"empty selector": {
			"it would take every pod", `{"selector":{"matchLabels":null}}`, []string{"spec.selector: Invalid value"},
		},
		"selector of others": {
			"pods would not be found again", `{"selector":{"matchLabels":{"app":"b"}}}`,
			[]string{"spec.template.metadata.labels: Invalid value"},
		},
		"restart policy": {
			"pods that end are no service", `{"template":{"spec":{"restartPolicy":"Never"}}}`,
			[]string{"spec.template.spec.restartPolicy: Unsupported value"},
		},
		"deadline of pods": {
			"pods that end are no service", `{"template":{"spec":{"activeDeadlineSeconds":5}}}`,
			[]string{"spec.template.spec.activeDeadlineSeconds: Forbidden"},
		},
		"a pod twice": {
			"a name means one pod", `{"scaleStrategy":{"podsToDelete":["a","b","a"]}}`,
			[]string{"spec.scaleStrategy.podsToDelete: Duplicate value"},
		},
		"scaling by a fraction": {
			"fractions were taken and meant 0", `{"scaleStrategy":{"maxUnavailable":"12.5%"}}`, nil,
		},
		"scaling by a word": {
			"it stopped scaling for ever", `{"scaleStrategy":{"maxUnavailable":"some"}}`,
			[]string{"spec.scaleStrategy.maxUnavailable: Invalid value"},
		},
		"scaling is stopped": {"a user may want that", `{"scaleStrategy":{"maxUnavailable":0}}`, nil},

		"unknown type": {
			"the value is unknown", `{"updateStrategy":{"type":"ReCreate"}}`,
			[]string{"spec.updateStrategy.type: Unsupported value"},
		},
		"OnDelete and part": {
			"what is left out has its default", `{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"paused":true}}}`, nil,
		},
		"unknown policy": {
			"the value is unknown", rolling(`{"podUpdatePolicy":"Gently"}`), []string{at + "podUpdatePolicy: Unsupported value"},
		},

		"partition is negative": {
			"there is no such number", rolling(`{"partition":-1}`), []string{at + "partition: Invalid value"},
		},
		"partition of a fraction": {"canaries of large sets are small", rolling(`{"partition":"99.9%"}`), nil},
		"partition is no number": {
			"there is nothing before the sign", rolling(`{"partition":"%"}`), []string{at + "partition: Invalid value"},
		},
		"empty amounts": {"nor is there without one", rolling(`{"partition":"","maxUnavailable":"","maxSurge":""}`), []string{
			at + "partition: Invalid value", at + "maxUnavailable: Invalid value", at + "maxSurge: Invalid value",
		}},

		"neither budget": {
			"no pod could be updated", rolling(`{"maxUnavailable":0,"maxSurge":0}`),
			[]string{at + "maxUnavailable: Invalid value"},
		},
		"surge alone": {"this is how updates lose no pod", rolling(`{"maxUnavailable":0,"maxSurge":1}`), nil},
		"neither budget, no pods": {
			"there is nothing to update", `{"replicas":0,"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}}`, nil,
		},
		"negative budgets": {
			"there are no such numbers", rolling(`{"maxUnavailable":-1,"maxSurge":"-1%"}`),
			[]string{at + "maxUnavailable: Invalid value", at + "maxSurge: Invalid value"},
		},
		"surge in place": {
			"there is no pod to surge", rolling(`{"podUpdatePolicy":"InPlaceOnly","maxSurge":1}`),
			[]string{at + "maxSurge: Invalid value"},
		},
		"surge, in place or not": {
			"then it is for the others", rolling(`{"podUpdatePolicy":"InPlaceIfPossible","maxSurge":1}`), nil,
		},
		"numbers beyond all sense": {
			"they are none that we know", rolling(`{"maxSurge":"` + strings.Repeat("9", 64) + `%"}`),
			[]string{at + "maxSurge: Invalid value"},
		},

		"weights and order": {
			"the two say different things",
			rolling(`{"priorityStrategy":{"weightPriority":[{"weight":1,"matchSelector":{"matchLabels":{"a":"b"}}}],"orderPriority":[{"orderedKey":"k"}]}}`),
			[]string{at + "priorityStrategy: Required value"},
		},
		"weights": {
			"each term is judged", rolling(`{"priorityStrategy":{"weightPriority":[
				{"weight":101,"matchSelector":{}},{"weight":-1,"matchSelector":{"matchExpressions":[{"key":"a",
				"operator":"Like"}]}},
				{"weight":100,"matchSelector":{"matchLabels":{"a":"b"}}}]}}`),
			[]string{
				at + "priorityStrategy.weightPriority[0].weight: Required value",
				at + "priorityStrategy.weightPriority[0].matchSelector: Required value",
				at + "priorityStrategy.weightPriority[1].weight: Required value",
				at + "priorityStrategy.weightPriority[1].matchSelector: Required value",
			},
		},
		"order without a key": {
			"there is nothing to order by",
			rolling(`{"priorityStrategy":{"orderPriority":[{"orderedKey":""},{"orderedKey":"k"}]}}`),
			[]string{at + "priorityStrategy.orderPriority[0].orderedKey: Required value"},
		},
		"scatter": {
			"a key is needed, once",
			rolling(`{"scatterStrategy":[{"key":"","value":"v"},{"key":"k","value":"a"},{"key":"k","value":"b"},{"key":"k","value":"a"}]}`),
			[]string{at + "scatterStrategy[0].key: Required value", at + "scatterStrategy[3]: Required value"},
		},

		"parallelism": {"a number", rolling(`{"inPlaceUpdateStrategy":{"imagePreDownloadParallelism":10}}`), nil},
		"parallelism is negative": {
			"there is no such number", rolling(`{"inPlaceUpdateStrategy":{"imagePreDownloadParallelism":-1}}`),
			[]string{at + "inPlaceUpdateStrategy.imagePreDownloadParallelism: Invalid value"},
		},
		"negative waits": {
			"there are no such numbers",
			rolling(`{"inPlaceUpdateStrategy":{"imagePreDownloadTimeoutSeconds":-1,"imagePreDownloadMinUpdatedReadyPods":-1}}`),
			[]string{
				at + "inPlaceUpdateStrategy.imagePreDownloadTimeoutSeconds: Invalid value",
				at + "inPlaceUpdateStrategy.imagePreDownloadMinUpdatedReadyPods: Invalid value",
			},
		},

		"deadline before ready": {
			"each rollout would be late", `{"progressDeadlineSeconds":10,"minReadySeconds":10}`,
			[]string{"spec.progressDeadlineSeconds: Invalid value"},
		},
		"deadline is negative": {
			"there is no such time", `{"progressDeadlineSeconds":-1,"minReadySeconds":-2}`,
			[]string{"spec.progressDeadlineSeconds: Invalid value"},
		},
		"no deadline": {
			"the largest number means none", `{"progressDeadlineSeconds":2147483647,"minReadySeconds":2147483647}`, nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := hubSet(t, c.patch)
			if diff := cmp.Diff(c.want, validationtest.Places(validation.CloneSet(set))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			set.Default()
			if diff := cmp.Diff(c.want, validationtest.Places(validation.CloneSet(set))); diff != "" {
				t.Errorf("with defaults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCloneSetMetadata(t *testing.T) {
	set := hubSet(t, "")
	set.Name, set.Labels = "Not A Name", map[string]string{"a b": "c"}
	if diff := cmp.Diff([]string{"metadata.name: Invalid value", "metadata.labels: Invalid value"},
		validationtest.Places(validation.CloneSet(set))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCloneSetUpdate(t *testing.T) {
	const only, image = `"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceOnly"}}`,
		`"containers":[{"name":"main","image":"app:2"}]`
	cases := map[string]struct {
		why, from, to string
		want          []string
	}{
		"another selector": {"pods would be lost", ``, `{"selector":{"matchLabels":{"b":"c"}}}`, []string{"spec: Forbidden"}},
		"all the rest": {
			why:  "these are the fields that change",
			from: ``,
			to: `{"replicas":3,"template":{"spec":{` + image + `}},"lifecycle":{},"scaleStrategy":{"podsToDelete":["x"]},
				"minReadySeconds":1,"progressDeadlineSeconds":9,"volumeClaimTemplates":[{}],"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"}}`,
		},
		"an image in place": {
			why:  "this is what in-place updates do",
			from: `{` + only + `}`,
			to:   `{` + only + `,"template":{"spec":{` + image + `}}}`,
		},
		"labels in place": {
			why:  "metadata of pods can change",
			from: `{` + only + `}`,
			to:   `{` + only + `,"template":{"metadata":{"labels":{"b":"c"},"annotations":{"d":"e"}}}}`,
		},
		"a field in place": {
			why:  "pods would have to be recreated",
			from: `{` + only + `}`,
			to:   `{` + only + `,"template":{"spec":{"priority":1}}}`,
			want: []string{"spec: Forbidden"},
		},
		"resources in place": {
			why:  "even where they could be resized",
			from: `{` + only + `}`,
			to: `{` + only +
				`,"template":{"spec":{"containers":[{"name":"main","image":"app:1","resources":{"limits":{"cpu":"1"}}}]}}}`,
			want: []string{"spec: Forbidden"},
		},
		"an init container": {
			why:  "it has run already",
			from: `{` + only + `,"template":{"spec":{"initContainers":[{"name":"i","image":"a"}]}}}`,
			to:   `{` + only + `,"template":{"spec":{"initContainers":[{"name":"i","image":"b"}]}}}`,
			want: []string{"spec: Forbidden"},
		},
		"in place no longer": {"the new policy counts", `{` + only + `}`, `{"template":{"spec":{"priority":1}}}`, nil},
		"in place from now": {
			why:  "the new policy counts",
			from: ``,
			to:   `{` + only + `,"template":{"spec":{"priority":1}}}`,
			want: []string{"spec: Forbidden"},
		},
		"by hand": {
			why: "the policy has no say", from: ``,
			to: `{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"podUpdatePolicy":"InPlaceOnly"}},"template":{"spec":{"priority":1}}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			faults := validation.CloneSetUpdate(hubSet(t, c.to), hubSet(t, c.from))
			if diff := cmp.Diff(c.want, validationtest.Places(faults)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// hubSet is a CloneSet of one container whose spec is changed by a merge patch.
func hubSet(t testing.TB, patch string) *appsv1beta1.CloneSet {
	t.Helper()
	set := &appsv1beta1.CloneSet{}
	set.Namespace, set.Name = "default", "a"
	validationtest.Patched(t, `{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},
		"spec":{"containers":[{"name":"main","image":"app:1"}]}}}`, patch, &set.Spec)
	return set
}
