package sidecarset_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// TestPathsAreThoseOfTheVersion puts the same faults into both versions.
func TestPathsAreThoseOfTheVersion(t *testing.T) {
	const label = `{"metadata":{"name":"a","labels":{"apps.kruise.io/sidecarset-custom-version":"a b"}},"spec":{"selector":{"matchLabels":{"a":"b"}},"containers":[{"name":"c"}]}}`
	cases := map[string]struct {
		why, version, object string
		want                 []string
	}{
		"v1beta1 namespaces":  {"by labels", "v1beta1", object(t, "v1beta1", `{"namespaceSelector":{"matchLabels":{"a":"?"}}}`), []string{"spec.namespaceSelector.matchLabels: FieldValueInvalid"}},
		"v1alpha1 namespaces": {"by labels", "v1alpha1", object(t, "v1alpha1", `{"namespaceSelector":{"matchLabels":{"a":"?"}}}`), []string{"spec.namespaceSelector.matchLabels: FieldValueInvalid"}},
		"v1alpha1 namespace":  {"by name", "v1alpha1", object(t, "v1alpha1", `{"namespace":"?"}`), []string{"spec.namespace: FieldValueInvalid"}},
		"v1beta1 version":     {"it is a field", "v1beta1", object(t, "v1beta1", `{"customVersion":"a b"}`), []string{"spec.customVersion: FieldValueInvalid"}},
		"v1alpha1 version":    {"it is a label", "v1alpha1", label, []string{"metadata.labels[apps.kruise.io/sidecarset-custom-version]: FieldValueInvalid"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := newWebhooks(t, &plainServer{}, sidecarset.Options{}).Validate(t.Context(), newRequest(c.version, c.object, ""))
			if diff := cmp.Diff(c.want, plaintest.Causes(answer)); diff != "" || answer.Result.Code != 422 {
				t.Errorf("%s: code %d (-want +got):\n%s\n%v", c.why, answer.Result.Code, diff, answer.Result)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	const (
		bad     = `{"selector":{"matchLabels":null}}`
		worse   = `{"selector":{"matchLabels":null},"revisionHistoryLimit":1,"customVersion":"a b"}`
		pinned  = `{"injectionStrategy":{"revision":{"revisionName":"gone"}}}`
		touched = `{"revisionHistoryLimit":1,"injectionStrategy":{"revision":{"revisionName":"gone"}}}`
		written = `{"patchPodMetadata":[{"annotations":{"k":"v"}}]}`
		other   = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet","metadata":{"name":"other"},"spec":{"selector":{"matchLabels":{"app":"x"}},"containers":[{"name":"agent"}]}}`
		odd     = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet","metadata":{"name":"odd"},"spec":{"selector":{"matchLabels":{"app":"x"}},"containers":[{"name":"agent","env":7}]}}`
	)
	cases := map[string]struct {
		why, now, stored string
		others           []string
		want             []string
		warnings, calls  int
	}{
		"a fault that was there":       {"nobody could repair the set", bad, bad, nil, nil, 1, 0},
		"one more":                     {"it is new", worse, bad, nil, []string{"spec.customVersion: FieldValueInvalid"}, 1, 0},
		"a revision that is gone":      {"it was there when it was asked for", touched, pinned, nil, nil, 0, 1},
		"a revision that never was":    {"it is asked for now", pinned, `{}`, nil, []string{"spec.injectionStrategy.revision: FieldValueInvalid"}, 0, 1},
		"annotations that are written": {"they were let in", written, written, nil, nil, 0, 0},
		"annotations that are new":     {"no rule lets them in", written, `{}`, nil, []string{"spec.patchPodMetadata: FieldValueRequired"}, 0, 1},
		"a conflict that is new":       {"with a set that was there", `{}`, `{"selector":{"matchLabels":{"app":"y"}}}`, []string{other}, []string{"spec.containers[0].name: FieldValueInvalid"}, 0, 2},
		"a conflict that was there":    {"nobody could repair the set", `{"revisionHistoryLimit":1}`, `{}`, []string{other}, nil, 1, 2},
		"a set that nobody can read":   {"nobody knows what it has", `{}`, `{"selector":{"matchLabels":{"app":"y"}}}`, []string{odd}, nil, 0, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := &plainServer{others: c.others}
			answer := newWebhooks(t, server, sidecarset.Options{}).Validate(t.Context(), newRequest("v1beta1", object(t, "v1beta1", c.now), object(t, "v1beta1", c.stored)))
			if diff := cmp.Diff(c.want, plaintest.Causes(answer)); diff != "" || answer.Allowed != (c.want == nil) || len(answer.Warnings) != c.warnings {
				t.Errorf("%s: %v, warnings %q (-want +got):\n%s", c.why, answer.Result, answer.Warnings, diff)
			}
			if server.calls != c.calls {
				t.Errorf("%s: %d calls", c.why, server.calls)
			}
		})
	}
}

// TestConflictWithNobody: a set that is listed, but has gone, is in the way of nobody.
func TestConflictWithNobody(t *testing.T) {
	gone := strings.Replace(object(t, "v1beta1", `{}`), `"name":"a"`, `"name":"gone"`, 1)
	for why, server := range map[string]*plainServer{
		"it was deleted":  {gone: []string{gone}},
		"it is leaving":   {others: []string{strings.Replace(gone, `"uid":"1"`, `"deletionTimestamp":"2024-05-06T07:08:09Z"`, 1)}, gone: []string{gone}},
		"it was changed":  {others: []string{strings.Replace(gone, `"app":"x"`, `"app":"y"`, 1)}, gone: []string{gone}},
		"nobody reads it": {others: []string{strings.Replace(gone, `"image":"a:1"`, `"env":7`, 1)}, gone: []string{gone}},
	} {
		if answer := newWebhooks(t, server, sidecarset.Options{}).Validate(t.Context(), newRequest("v1beta1", object(t, "v1beta1", `{}`), "")); !answer.Allowed {
			t.Errorf("%s: %v", why, answer.Result)
		}
	}
}

// TestDefaultsOfStored: a container that has its defaults gets none that nobody has asked for, be it written with or without
// those that it has.
func TestDefaultsOfStored(t *testing.T) {
	const (
		probe = `"startupProbe":{"exec":{"command":["true"]}}`
		done  = `"resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",`
	)
	with := func(image, more string) string {
		return object(t, "v1beta1", `{"containers":[{"name":"agent","image":"`+image+`",`+more+probe+`}]}`)
	}
	cases := map[string]struct {
		why, now, stored string
		want             string
	}{
		"a new set":         {"all defaults", with("a:1", ""), "", `{"exec":{"command":["true"]},"periodSeconds":10}`},
		"a stored one":      {"what it has gone without", with("a:2", done), with("a:1", done), `{"exec":{"command":["true"]}}`},
		"written again":     {"the same", with("a:2", ""), with("a:1", done), `{"exec":{"command":["true"]}}`},
		"never defaulted":   {"all defaults", with("a:2", ""), with("a:1", ""), `{"exec":{"command":["true"]},"periodSeconds":10}`},
		"another container": {"all defaults", with("a:2", ""), strings.ReplaceAll(with("a:1", done), `"agent"`, `"b"`), `{"exec":{"command":["true"]},"periodSeconds":10}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := newWebhooks(t, &plainServer{}, sidecarset.Options{}).Mutate(t.Context(), newRequest("v1beta1", c.now, c.stored))
			is := map[string]any{}
			plaintest.Decode(t, string(applied(t, c.now, answer)), &is)
			container := is["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
			if diff := cmp.Diff(c.want, plaintest.Encode(t, container["startupProbe"])); diff != "" || container["terminationMessagePolicy"] != "File" {
				t.Errorf("%s: %v (-want +got):\n%s", c.why, container, diff)
			}
		})
	}
}

// TestRefusedDryRuns tests clusters whose rules refuse PodTemplates: sets are admitted with what the webhooks find by themselves, and
// with a warning.
func TestRefusedDryRuns(t *testing.T) {
	templates := schema.GroupResource{Resource: "podtemplates"}
	forbidden := func(why string) error { return apierrors.NewForbidden(templates, "", errors.New(why)) }
	cases := map[string]struct {
		why, set string
		refuse   error
		want     []string
		code     int32
		warned   bool
	}{
		"a policy":             {"the set may be good", `{}`, forbidden("ValidatingAdmissionPolicy 'no-templates' denied request"), nil, 200, true},
		"a quota":              {"the set may be good", `{}`, forbidden("exceeded quota: q"), nil, 200, true},
		"a webhook":            {"the set may be good", `{}`, apierrors.NewBadRequest("admission webhook does not support dry run"), nil, 200, true},
		"a fault of the set":   {"the webhook finds it without a dry run", `{"customVersion":"a b"}`, forbidden("exceeded quota: q"), []string{"spec.customVersion: FieldValueInvalid"}, 422, true},
		"a missing permission": {"the installation is broken", `{}`, forbidden(`User "x" cannot create resource "podtemplates"`), nil, 500, false},
		"an outage":            {"a later request succeeds", `{}`, errors.New("connection reset"), nil, 500, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWebhooks(t, &plainServer{refuse: c.refuse}, sidecarset.Options{})
			request := newRequest("v1beta1", object(t, "v1beta1", c.set), "")
			answer := w.Validate(t.Context(), request)
			if diff := cmp.Diff(c.want, plaintest.Causes(answer)); diff != "" || answer.Result.Code != c.code {
				t.Errorf("%s: %v (-want +got):\n%s", c.why, answer.Result, diff)
			}
			const warning = "spec.containers: are neither defaulted nor validated: "
			if warned := slices.ContainsFunc(answer.Warnings, func(text string) bool { return strings.HasPrefix(text, warning) }); warned != c.warned {
				t.Errorf("%s: warnings %q", c.why, answer.Warnings)
			}
			if mutated := w.Mutate(t.Context(), request); mutated.Allowed != c.warned {
				t.Errorf("%s: defaults: %v", c.why, mutated.Result)
			} else if c.warned && !strings.Contains(string(applied(t, object(t, "v1beta1", c.set), mutated)), "kruise.io/sidecarset-hash") {
				t.Errorf("%s: the set has no hash", c.why)
			}
		})
	}
}

// TestSparedNamespaces: without the warning, no user would notice that such a set does nothing.
func TestSparedNamespaces(t *testing.T) {
	set := object(t, "v1beta1", `{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"managers"}}}`)
	for namespace, want := range map[string]int{"managers": 1, "others": 0} {
		answer := newWebhooks(t, &plainServer{}, sidecarset.Options{Namespace: namespace}).Validate(t.Context(), newRequest("v1beta1", set, ""))
		if !answer.Allowed || len(answer.Warnings) != want {
			t.Errorf("the manager is in %s: %v, warnings %q", namespace, answer.Result, answer.Warnings)
		}
	}
}

// applied is what the API server makes of an object.
func applied(t testing.TB, sent string, answer admission.Response) []byte {
	t.Helper()
	if !answer.Allowed {
		t.Fatal(answer.Result)
	}
	if answer.Patch == nil {
		return []byte(sent)
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		t.Fatal(err)
	}
	is, err := patch.Apply([]byte(sent))
	if err != nil {
		t.Fatalf("%v: %s", err, answer.Patch)
	}
	return is
}

// TestMutateOnce: what has its defaults gets none, and keeps its hashes.
func TestMutateOnce(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		w := newWebhooks(t, &plainServer{}, sidecarset.Options{})
		sent := object(t, version, `{"unknown":1,"containers":[{"name":"agent","image":"a:1","new":{"of":"tomorrow"}}],"initContainers":[{"name":"i"}],"volumes":[{"name":"v"}]}`)
		once := applied(t, sent, w.Mutate(t.Context(), newRequest(version, sent, "")))
		for _, keep := range []string{`"unknown":1`, `"new":{"of":"tomorrow"}`, `"kruise.io/sidecarset-hash"`} {
			if !strings.Contains(string(once), keep) {
				t.Errorf("%s: %s is missing in %s", version, keep, once)
			}
		}
		if again := w.Mutate(t.Context(), newRequest(version, string(once), sent)); again.Patch != nil {
			t.Errorf("%s: it is changed again: %s", version, again.Patch)
		}
		stale := strings.Replace(string(once), `"kruise.io/sidecarset-hash":"`, `"kruise.io/sidecarset-hash":"stale`, 1)
		if healed := applied(t, stale, w.Mutate(t.Context(), newRequest(version, stale, sent))); string(healed) != string(once) {
			t.Errorf("%s: want %s, got %s", version, once, healed)
		}
	}
}

// TestNoVerdict: an API server that does not answer is no reason to let pass, and the user learns why.
func TestNoVerdict(t *testing.T) {
	cases := map[string]struct {
		err  error
		want int32
	}{
		"slow":             {context.DeadlineExceeded, 504},
		"broken":           {errors.New("boom"), 500},
		"no namespace":     {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), 404},
		"wrong containers": {apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "", field.ErrorList{field.Required(field.NewPath("template", "spec", "containers"), "")}), 422},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWebhooks(t, &plainServer{fail: c.err}, sidecarset.Options{})
			r := newRequest("v1beta1", object(t, "v1beta1", `{}`), "")
			validated, mutated := w.Validate(t.Context(), r), w.Mutate(t.Context(), r)
			if validated.Allowed || validated.Result.Code != c.want || mutated.Allowed != (c.want == 422) || !mutated.Allowed && mutated.Result.Code != c.want {
				t.Errorf("want %d, got %v and %v", c.want, validated.Result, mutated.Result)
			}
			if want := []string{"spec.containers: FieldValueRequired"}; c.want == 422 && !slices.Equal(want, plaintest.Causes(validated)) {
				t.Errorf("want %v, got %v", want, plaintest.Causes(validated))
			}
		})
	}
	for name, patch := range map[string]string{
		"other sets":    `{"customVersion":"1"}`,
		"a revision":    `{"injectionStrategy":{"revision":{"revisionName":"x"}}}`,
		"revisions":     `{"injectionStrategy":{"revision":{"customVersion":"x"}}}`,
		"allowed write": `{"patchPodMetadata":[{"annotations":{"k":"v"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWebhooks(t, &plainServer{fail: context.DeadlineExceeded}, sidecarset.Options{})
			answer := w.Validate(t.Context(), newRequest("v1beta1", object(t, "v1beta1", patch), object(t, "v1beta1", `{}`)))
			if answer.Allowed || answer.Result.Code != 504 {
				t.Errorf("want 504, got %v", answer.Result)
			}
		})
	}
	t.Run("a base", func(t *testing.T) {
		canary := strings.Replace(object(t, "v1beta1", `{"updateStrategy":{"type":"NotUpdate"}}`), `"uid":"1"`, `"annotations":{"apps.kruise.io/sidecarset-canary":"true","apps.kruise.io/sidecarset-base":"b"}`, 1)
		w := newWebhooks(t, &plainServer{fail: errors.New("boom")}, sidecarset.Options{})
		if answer := w.Validate(t.Context(), newRequest("v1beta1", canary, object(t, "v1beta1", `{}`))); answer.Allowed || answer.Result.Code != 500 {
			t.Errorf("want 500, got %v", answer.Result)
		}
	})
}

// TestOddRequests: what is no request for a SidecarSet, or no SidecarSet.
func TestOddRequests(t *testing.T) {
	good := object(t, "v1beta1", `{}`)
	status := newRequest("v1beta1", good, good)
	status.SubResource = "status"
	deleted := newRequest("v1beta1", "", good)
	deleted.Operation = admissionv1.Delete
	other := newRequest("v1beta1", good, "")
	other.Resource.Resource = "clonesets"
	cases := map[string]struct {
		why              string
		request          admission.Request
		mutate, validate int32
	}{
		"a subresource":    {"it is not ours", status, 200, 200},
		"a deletion":       {"everything may go", deleted, 200, 200},
		"on its way out":   {"its finalizers must come off", newRequest("v1beta1", `{"spec":7}`, `{"metadata":{"deletionTimestamp":"2024-05-06T07:08:09Z"}}`), 200, 200},
		"another kind":     {"somebody misconfigured us", other, 400, 400},
		"another version":  {"we would read it wrong", newRequest("v1", good, ""), 400, 400},
		"nothing":          {"there is nothing to judge", newRequest("v1beta1", "", ""), 400, 400},
		"null":             {"there is nothing to judge", newRequest("v1beta1", "null", ""), 400, 400},
		"a list":           {"there is nothing to judge", newRequest("v1alpha1", "[]", ""), 400, 400},
		"a wrong type":     {"no schema looks into it", newRequest("v1beta1", `{"spec":{"containers":[{"env":7}]}}`, ""), 200, 400},
		"an odd stored":    {"anything is better", newRequest("v1beta1", good, `{"spec":{"containers":[{"env":7}]}}`), 200, 200},
		"an empty object":  {"everything is missing", newRequest("v1alpha1", `{}`, ""), 200, 422},
		"null in parts":    {"null is nothing", newRequest("v1alpha1", `{"metadata":null,"spec":null}`, ""), 200, 422},
		"null in lists":    {"null is nothing", newRequest("v1beta1", `{"spec":{"containers":[null],"volumes":[null],"initContainers":[null]}}`, ""), 200, 422},
		"too many values":  {"no container needs them", newRequest("v1beta1", `{"spec":{"containers":[{"args":[`+strings.Repeat(`"a",`, 20_000)+`"a"]}]}}`, ""), 422, 422},
		"no field to read": {"that used to crash", newRequest("v1beta1", object(t, "v1beta1", `{"containers":[{"name":"c","transferEnv":[{"sourceContainerNameFrom":{}}]}]}`), ""), 200, 200},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWebhooks(t, &plainServer{}, sidecarset.Options{})
			mutated, validated := w.Mutate(t.Context(), c.request), w.Validate(t.Context(), c.request)
			if diff := cmp.Diff([]int32{c.mutate, c.validate}, []int32{mutated.Result.Code, validated.Result.Code}); diff != "" {
				t.Errorf("%s: codes (-want +got):\n%s\n%s\n%s", c.why, diff, mutated.Result.Message, validated.Result.Message)
			}
		})
	}
}

func TestNew(t *testing.T) {
	c := (&plainServer{}).client()
	if _, err := sidecarset.New(nil, c, sidecarset.Options{}); err == nil {
		t.Error("without a client")
	}
	if _, err := sidecarset.New(c, nil, sidecarset.Options{}); err == nil {
		t.Error("without a reader of sets")
	}
	if _, err := sidecarset.New(c, c, sidecarset.Options{Timeout: -time.Second}); err == nil {
		t.Error("with a negative timeout")
	}
}

// FuzzRequests: no request makes the webhooks panic, a patch fits what was sent, and what is refused has a reason.
func FuzzRequests(f *testing.F) {
	f.Add(object(f, "v1beta1", `{"volumes":[null,{"name":"v"}],"initContainers":[{"restartPolicy":"Always","resourcesPolicy":{}}],"injectionStrategy":{"revision":{"revisionName":"a"}}}`), "", "")
	f.Add(object(f, "v1alpha1", `{"namespace":"?","patchPodMetadata":[{"annotations":{"k":"v"}},null],"containers":[null]}`), object(f, "v1beta1", `{}`), `{"metadata":{"name":"b"},"spec":{"selector":{"matchLabels":{"app":"x"}},"containers":[null,{"name":"agent"}]}}`)
	f.Add(`{"metadata":{"annotations":{"apps.kruise.io/sidecarset-canary":"true","apps.kruise.io/sidecarset-base":"b"}},"spec":{"updateStrategy":{"selector":{"matchExpressions":[{}]},"partition":"x"}}}`, `7`, "")
	f.Fuzz(func(t *testing.T, now, stored, other string) {
		server := &plainServer{}
		if json.Valid([]byte(other)) && strings.HasPrefix(other, `{"metadata":{"name":"`) {
			server.others = []string{`{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet",` + other[1:]}
		}
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			w, r := newWebhooks(t, server, sidecarset.Options{}), newRequest(version, now, stored)
			mutated, validated := w.Mutate(t.Context(), r), w.Validate(t.Context(), r)
			for _, answer := range []admission.Response{mutated, validated} {
				if !answer.Allowed && answer.Result.Message == "" {
					t.Errorf("refused without a word: %+v", answer.Result)
				}
			}
			if mutated.Patch != nil && json.Valid([]byte(now)) {
				applied(t, now, mutated)
			}
		}
	})
}
