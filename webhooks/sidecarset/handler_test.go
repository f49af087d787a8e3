package sidecarset_test

import (
	"context"
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

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// TestPathsAreThoseOfTheVersion puts the same faults into both versions.
func TestPathsAreThoseOfTheVersion(t *testing.T) {
	const label = `{"metadata":{"name":"a","labels":{"apps.kruise.io/sidecarset-custom-version":"a b"}},"spec":{"selector":{"matchLabels":{"a":"b"}},"containers":[{"name":"c"}]}}`
	cases := map[string]struct {
		why, version, object string
		want                 []string
	}{
		"v1beta1 namespaces": {
			why:     "by labels",
			version: "v1beta1",
			object:  object(t, "v1beta1", `{"namespaceSelector":{"matchLabels":{"a":"?"}}}`),
			want:    []string{"spec.namespaceSelector.matchLabels: FieldValueInvalid"},
		},
		"v1alpha1 namespace": {
			why:     "by name",
			version: "v1alpha1",
			object:  object(t, "v1alpha1", `{"namespace":"?"}`),
			want:    []string{"spec.namespace: FieldValueInvalid"},
		},
		"v1beta1 version": {
			why:     "it is a field",
			version: "v1beta1",
			object:  object(t, "v1beta1", `{"customVersion":"a b"}`),
			want:    []string{"spec.customVersion: FieldValueInvalid"},
		},
		"v1alpha1 version": {
			why:     "it is a label",
			version: "v1alpha1",
			object:  label,
			want:    []string{"metadata.labels[apps.kruise.io/sidecarset-custom-version]: FieldValueInvalid"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := newWebhooks(t, &plainServer{}, sidecarset.Options{})[sidecarset.ValidatePath](t.Context(),
				newRequest(c.version, c.object, ""))
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
		"a fault that was there": {"nobody could repair the set", bad, bad, nil, nil, 1, 0},
		"one more": {
			why: "it is new", now: worse, stored: bad, want: []string{"spec.customVersion: FieldValueInvalid"}, warnings: 1,
		},
		"a revision that is gone": {"it was there when it was asked for", touched, pinned, nil, nil, 0, 1},
		"a revision that never was": {
			why:    "it is asked for now",
			now:    pinned,
			stored: `{}`,
			want:   []string{"spec.injectionStrategy.revision: FieldValueInvalid"},
			calls:  1,
		},
		"annotations that are written": {"they were let in", written, written, nil, nil, 0, 0},
		"a conflict that is new": {
			why:    "with a set that was there",
			now:    `{}`,
			stored: `{"selector":{"matchLabels":{"app":"y"}}}`,
			others: []string{other},
			want:   []string{"spec.containers[0].name: FieldValueInvalid"},
			calls:  2,
		},
		"a conflict that was there": {
			why:      "nobody could repair the set",
			now:      `{"revisionHistoryLimit":1}`,
			stored:   `{}`,
			others:   []string{other},
			warnings: 1,
			calls:    1,
		},
		"a set that nobody can read": {
			why:    "nobody knows what it has",
			now:    `{}`,
			stored: `{"selector":{"matchLabels":{"app":"y"}}}`,
			others: []string{odd},
			calls:  1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := &plainServer{others: c.others}
			answer := newWebhooks(t, server, sidecarset.Options{})[sidecarset.ValidatePath](t.Context(),
				newRequest("v1beta1", object(t, "v1beta1", c.now), object(t, "v1beta1", c.stored)))
			if diff := cmp.Diff(c.want, plaintest.Causes(answer)); diff != "" || answer.Allowed != (c.want == nil) ||
				len(answer.Warnings) != c.warnings {
				t.Errorf("%s: %v, warnings %q (-want +got):\n%s", c.why, answer.Result, answer.Warnings, diff)
			}
			if server.calls != c.calls {
				t.Errorf("%s: %d calls", c.why, server.calls)
			}
		})
	}
}

// TestNoConflict: a set that is being deleted, or cannot be decoded, conflicts with no other set. Nor does one that
// only the cache has.
func TestNoConflict(t *testing.T) {
	other := strings.Replace(object(t, "v1beta1", `{}`), `"name":"a"`, `"name":"b"`, 1)
	for why, set := range map[string]string{
		"it is being deleted":  strings.Replace(other, `"uid":"1"`, `"deletionTimestamp":"2024-05-06T07:08:09Z"`, 1),
		"it cannot be decoded": strings.Replace(other, `"image":"a:1"`, `"env":7`, 1),
	} {
		server := &plainServer{others: []string{set}}
		if answer := newWebhooks(t, server, sidecarset.Options{})[sidecarset.ValidatePath](t.Context(),
			newRequest("v1beta1", object(t, "v1beta1", `{}`), "")); !answer.Allowed {
			t.Errorf("%s: %v", why, answer.Result)
		}
	}
	live, cached := &plainServer{}, &plainServer{others: []string{other}}
	w, err := sidecarset.New(live.client(), cached.client(), sidecarset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRequest("v1beta1", object(t, "v1beta1", `{}`), "")
	if answer := w[sidecarset.ValidatePath](t.Context(), r); !answer.Allowed {
		t.Errorf("the cache lags: %v", answer.Result)
	}
}

// TestRefusedDryRuns tests clusters whose rules refuse PodTemplates: sets are admitted with what the webhooks find by
// themselves, and with a warning.
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
		"a policy": {
			why:    "the set may be good",
			set:    `{}`,
			refuse: forbidden("ValidatingAdmissionPolicy 'no-templates' denied request"),
			code:   200,
			warned: true,
		},
		"a webhook": {
			why:    "the set may be good",
			set:    `{}`,
			refuse: apierrors.NewBadRequest("admission webhook does not support dry run"),
			code:   200,
			warned: true,
		},
		"a fault of the set": {
			why:    "the webhook finds it without a dry run",
			set:    `{"customVersion":"a b"}`,
			refuse: forbidden("exceeded quota: q"),
			want:   []string{"spec.customVersion: FieldValueInvalid"},
			code:   422,
			warned: true,
		},
		"a missing permission": {
			why:    "the installation is broken",
			set:    `{}`,
			refuse: forbidden(`User "x" cannot create resource "podtemplates"`),
			code:   500,
		},
		"an outage": {"a later request succeeds", `{}`, errors.New("connection reset"), nil, 500, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWebhooks(t, &plainServer{refuse: c.refuse}, sidecarset.Options{})
			request := newRequest("v1beta1", object(t, "v1beta1", c.set), "")
			answer := w[sidecarset.ValidatePath](t.Context(), request)
			if diff := cmp.Diff(c.want, plaintest.Causes(answer)); diff != "" || answer.Result.Code != c.code {
				t.Errorf("%s: %v (-want +got):\n%s", c.why, answer.Result, diff)
			}
			const warning = "spec.containers: are neither defaulted nor validated: "
			if warned := slices.ContainsFunc(answer.Warnings, func(text string) bool {
				return strings.HasPrefix(text, warning)
			}); warned != c.warned {
				t.Errorf("%s: warnings %q", c.why, answer.Warnings)
			}
			if mutated := w[sidecarset.MutatePath](t.Context(), request); mutated.Allowed != c.warned {
				t.Errorf("%s: defaults: %v", c.why, mutated.Result)
			} else if c.warned &&
				!strings.Contains(string(applied(t, object(t, "v1beta1", c.set), mutated)), "kruise.io/sidecarset-hash") {
				t.Errorf("%s: the set has no hash", c.why)
			}
		})
	}
}

// TestSparedNamespaces: without the warning, no user would notice that such a set does nothing.
func TestSparedNamespaces(t *testing.T) {
	set := object(t, "v1beta1", `{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"managers"}}}`)
	for namespace, want := range map[string]int{"managers": 1, "others": 0} {
		w := newWebhooks(t, &plainServer{}, sidecarset.Options{Namespace: namespace})
		answer := w[sidecarset.ValidatePath](t.Context(), newRequest("v1beta1", set, ""))
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

// TestNoVerdict: an API server that does not answer is no reason to let pass, and the user learns why.
func TestNoVerdict(t *testing.T) {
	cases := map[string]struct {
		err  error
		want int32
	}{
		"slow":         {context.DeadlineExceeded, 504},
		"broken":       {errors.New("boom"), 500},
		"no namespace": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), 404},
		"wrong containers": {
			apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "", field.ErrorList{
				field.Required(field.NewPath("template", "spec", "containers"), ""),
			}),
			422,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWebhooks(t, &plainServer{fail: c.err}, sidecarset.Options{})
			r := newRequest("v1beta1", object(t, "v1beta1", `{}`), "")
			validated, mutated := w[sidecarset.ValidatePath](t.Context(), r), w[sidecarset.MutatePath](t.Context(), r)
			if validated.Allowed || validated.Result.Code != c.want || mutated.Allowed != (c.want == 422) ||
				!mutated.Allowed && mutated.Result.Code != c.want {
				t.Errorf("want %d, got %v and %v", c.want, validated.Result, mutated.Result)
			}
			if want := []string{
				"spec.containers: FieldValueRequired",
			}; c.want == 422 && !slices.Equal(want, plaintest.Causes(validated)) {
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
			answer := w[sidecarset.ValidatePath](t.Context(), newRequest("v1beta1", object(t, "v1beta1", patch), object(t, "v1beta1", `{}`)))
			if answer.Allowed || answer.Result.Code != 504 {
				t.Errorf("want 504, got %v", answer.Result)
			}
		})
	}
	t.Run("a base", func(t *testing.T) {
		canary := strings.Replace(object(t, "v1beta1", `{"updateStrategy":{"type":"NotUpdate"}}`), `"uid":"1"`,
			`"annotations":{"apps.kruise.io/sidecarset-canary":"true","apps.kruise.io/sidecarset-base":"b"}`, 1)
		w := newWebhooks(t, &plainServer{fail: errors.New("boom")}, sidecarset.Options{})
		if answer := w[sidecarset.ValidatePath](t.Context(), newRequest("v1beta1", canary, object(t, "v1beta1", `{}`))); answer.Allowed ||
			answer.Result.Code != 500 {
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
	other.Kind.Kind = "CloneSet"
	cases := map[string]struct {
		why              string
		request          admission.Request
		mutate, validate int32
	}{
		"a subresource": {"it is not ours", status, 200, 200},
		"a deletion":    {"everything may go", deleted, 200, 200},
		"on its way out": {
			why:      "its finalizers must come off",
			request:  newRequest("v1beta1", `{"spec":7}`, `{"metadata":{"deletionTimestamp":"2024-05-06T07:08:09Z"}}`),
			mutate:   200,
			validate: 200,
		},
		"another kind": {"a wrong webhook configuration", other, 400, 400},
		"nothing":      {"there is nothing to judge", newRequest("v1beta1", "", ""), 400, 400},
		"null":         {"everything is missing", newRequest("v1beta1", "null", ""), 400, 422},
		"a wrong type": {
			why:      "no schema looks into it",
			request:  newRequest("v1beta1", `{"spec":{"containers":[{"env":7}]}}`, ""),
			mutate:   200,
			validate: 400,
		},
		"an odd stored": {
			why:      "the change is unknown",
			request:  newRequest("v1beta1", good, `{"spec":{"containers":[{"env":7}]}}`),
			mutate:   200,
			validate: 400,
		},
		"an empty object": {"everything is missing", newRequest("v1alpha1", `{}`, ""), 200, 422},
		"null in lists": {
			why:      "null is nothing",
			request:  newRequest("v1beta1", `{"spec":{"containers":[null],"volumes":[null],"initContainers":[null]}}`, ""),
			mutate:   200,
			validate: 422,
		},
		"too many values": {
			why:      "no container needs them",
			request:  newRequest("v1beta1", `{"spec":{"containers":[{"args":[`+strings.Repeat(`"a",`, 20_000)+`"a"]}]}}`, ""),
			mutate:   422,
			validate: 422,
		},
		"no field to read": {
			why: "that used to crash",
			request: newRequest("v1beta1",
				object(t, "v1beta1", `{"containers":[{"name":"c","transferEnv":[{"sourceContainerNameFrom":{}}]}]}`), ""),
			mutate:   200,
			validate: 200,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWebhooks(t, &plainServer{}, sidecarset.Options{})
			mutated := w[sidecarset.MutatePath](t.Context(), c.request)
			validated := w[sidecarset.ValidatePath](t.Context(), c.request)
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
