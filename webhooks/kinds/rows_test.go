package kinds_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

type (
	spread = appsv1beta1.WorkloadSpread
	row    = kinds.Row[*spread]
	diff   = kinds.Change[*spread]
)

// named is a WorkloadSpread with a target.
func named(target string) string {
	return `{"metadata":{"name":"web"},"spec":{"targetRef":{"apiVersion":"v1","kind":"A","name":"` + target + `"}}}`
}

// fault is at a path.
func fault(path string) field.ErrorList {
	return field.ErrorList{{Type: field.ErrorTypeInvalid, Field: path, BadValue: field.OmitValueType{}, Detail: "no"}}
}

// bad returns a fault of an object whose target is called bad.
func bad(s *spread) field.ErrorList {
	if s.Spec.TargetReference != nil && s.Spec.TargetReference.Name == "bad" {
		return fault("spec.bad")
	}
	return nil
}

// Each function of a row has its place on the way to an answer.
func TestRow(t *testing.T) {
	const leaving = `{"metadata":{"name":"web","deletionTimestamp":"2030-01-01T00:00:00Z"},"spec":7}`
	good := named("good")
	boom := errors.New("boom")
	rules := func(f func(*spread) field.ErrorList, err error) func(context.Context, kinds.API,
		diff) (func(*spread) field.ErrorList, error) {
		return func(context.Context, kinds.API, diff) (func(*spread) field.ErrorList, error) { return f, err }
	}
	lookup := func(found kinds.Finding, err error) func(context.Context, kinds.API, diff) (kinds.Finding, error) {
		return func(context.Context, kinds.API, diff) (kinds.Finding, error) { return found, err }
	}
	for name, c := range map[string]struct {
		why, now, stored string
		row              row
		want             plaintest.Want
		// of is the version of which the answer is; both if empty.
		of string
	}{
		"nothing": {why: "a row without rules admits", now: good},
		"a code": {
			why: "invalid objects are 422", now: named("bad"), row: row{Validate: bad},
			want: plaintest.Want{Code: 422, Paths: "spec.bad"},
		},
		"another code": {
			why: "as the reference answers", now: named("bad"), row: row{Validate: bad, Code: 400},
			want: plaintest.Want{Code: 400, Paths: "spec.bad"},
		},
		"a stored fault": {
			why: "it is a warning", now: named("bad"), stored: named("bad"), row: row{Validate: bad},
			want: plaintest.Want{Warnings: 1},
		},
		"a new fault": {
			why: "the stored object lacks it", now: named("bad"), stored: good, row: row{Validate: bad, Code: 400},
			want: plaintest.Want{Code: 400, Paths: "spec.bad"},
		},
		"leaving": {why: "finalizers can be removed", now: leaving, stored: leaving, row: row{AdmitDeleting: true}},
		"leaving, invalid": {
			why: "the row reviews it", now: leaving, stored: leaving, want: plaintest.Want{Code: 400, Paths: "spec"},
		},
		"closed": {
			why: "a gate is off", now: good, row: row{Closed: "the gate is off"},
			want: plaintest.Want{Code: 403, Text: "the gate is off"},
		},
		"closed, a change": {
			why: "what stays is not open to changes", now: good, stored: good, row: row{Closed: "off"},
			want: plaintest.Want{Code: 403},
		},
		"closed, odd": {
			why: "the answer is the same for all", now: `7`, row: row{Closed: "off"}, want: plaintest.Want{Code: 403},
		},
		"closed with 400": {
			why: "as the reference answers", now: good, row: row{Closed: "off", ClosedCode: 400},
			want: plaintest.Want{Code: 400},
		},
		"closed, leaving": {why: "finalizers can be removed", now: leaving, stored: leaving, row: row{Closed: "off"}},
		"rules": {
			why: "they replace Validate", now: named("bad"), row: row{Rules: rules(bad, nil)},
			want: plaintest.Want{Code: 422, Paths: "spec.bad"},
		},
		"rules, stored": {
			why: "they are those of the stored object too", now: named("bad"), stored: named("bad"),
			row: row{Rules: rules(bad, nil)}, want: plaintest.Want{Warnings: 1},
		},
		"rules, unread": {
			why: "it is no fault of the object", now: good, row: row{Rules: rules(nil, boom)},
			want: plaintest.Want{Code: 500, Text: "boom"},
		},
		"slow rules": {
			why: "it is no fault of the object", now: good, row: row{Rules: rules(nil, context.DeadlineExceeded)},
			want: plaintest.Want{Code: 504},
		},
		"an update": {
			why: "its faults come after those of the object", now: named("bad"), stored: good,
			row:  row{Validate: bad, ValidateUpdate: func(_, _ *spread) field.ErrorList { return fault("spec") }},
			want: plaintest.Want{Code: 422, Paths: "spec.bad spec"},
		},
		"fixed": {
			why: "it comes first, alone", now: named("bad"), stored: good,
			row:  row{Validate: bad, Fixed: func(diff) field.ErrorList { return fault("spec.fixed") }},
			want: plaintest.Want{Code: 403, Paths: "spec.fixed"},
		},
		"fixed, new": {
			why: "a new object can have anything", now: good,
			row: row{Fixed: func(diff) field.ErrorList { return fault("spec.fixed") }},
		},
		"a finding": {
			why: "its faults come last", now: named("bad"),
			row:  row{Validate: bad, Lookup: lookup(kinds.Finding{Faults: fault("spec.found")}, nil)},
			want: plaintest.Want{Code: 422, Paths: "spec.bad spec.found"},
		},
		"a warning": {
			why: "the object is admitted", now: good, row: row{Lookup: lookup(kinds.Finding{Warnings: []string{"x"}}, nil)},
			want: plaintest.Want{Warnings: 1},
		},
		"unread": {
			why: "it is no fault of the object", now: good, row: row{Lookup: lookup(kinds.Finding{}, boom)},
			want: plaintest.Want{Code: 500},
		},
		"two warners": {
			why: "both warn", now: good, row: row{Warn: func(*spread) []string { return []string{"a", "b"} }},
			want: plaintest.Want{Warnings: 2},
		},
		"older": {
			why: "the hub does not show it", now: good, of: "v1alpha1", want: plaintest.Want{Code: 422, Paths: "spec.older"},
			row: row{Older: func(_ client.Object, f field.ErrorList) field.ErrorList {
				return append(f,
					fault("spec.older")...)
			}},
		},
		"older, stored": {
			why: "it is a warning", now: good, stored: good, of: "v1alpha1", want: plaintest.Want{Warnings: 1},
			row: row{Older: func(_ client.Object, f field.ErrorList) field.ErrorList {
				return append(f,
					fault("spec.older")...)
			}},
		},
		"paths": {
			why: "they are those of the older version", now: named("bad"), of: "v1alpha1",
			want: plaintest.Want{Code: 422, Paths: "old.spec.bad"},
			row:  row{Validate: bad, OldPath: func(path string) string { return "old." + path }},
		},
		"ignored": {
			why: "it is a warning", now: named("bad"), of: "v1alpha1", want: plaintest.Want{Warnings: 1},
			row: row{Validate: bad, Ignores: func(old bool, f *field.Error) bool { return old && f.Field == "spec.bad" }},
		},
		"malformed": {
			why: "the place is known", now: `{"spec":{"subsets":7}}`, want: plaintest.Want{Code: 400, Paths: "spec.subsets"},
		},
	} {
		for _, version := range plaintest.Versions() {
			t.Run(name+"/"+version, func(t *testing.T) {
				want := c.want
				if c.of != "" && c.of != version { // the same object is valid in the newer version, or has its path there
					if want = (plaintest.Want{}); c.row.Validate != nil {
						want = plaintest.Want{Code: 422, Paths: "spec.bad"}
					}
				}
				of, own := c.row, spreads()
				of.Kind, of.Hub, of.Old, of.ValidatePath = own.Kind, own.Hub, own.Old, own.ValidatePath
				w := serve(t, (&plaintest.Server{}).Client(), of, kinds.Options{})
				r := plaintest.Request(plaintest.Kind("WorkloadSpread"), version, c.now, c.stored)
				plaintest.Answers(t, c.why, want, w[validate](t.Context(), r))
				r.SubResource = "status"
				plaintest.Answers(t, "a status is the controller's", plaintest.Want{}, w[validate](t.Context(), r))
			})
		}
	}
}

// A change has the objects in the newer version, with their namespace, and what the row has found before.
func TestChange(t *testing.T) {
	for _, version := range plaintest.Versions() {
		var got diff
		of := spreads()
		of.Validate = bad
		of.Lookup = func(ctx context.Context, _ kinds.API, c diff) (kinds.Finding, error) {
			got = c
			if left, is := ctx.Deadline(); !is || time.Until(left) > 3*time.Second {
				t.Errorf("deadline %s", left)
			}
			return kinds.Finding{Warnings: []string{"first"}}, nil
		}
		w := serve(t, (&plaintest.Server{}).Client(), of, kinds.Options{Timeout: 3 * time.Second})
		now, stored := named("bad"), named("good")
		answer := w[validate](t.Context(), plaintest.Request(plaintest.Kind("WorkloadSpread"), version, now, stored))
		is := []any{
			got.Old, got.Namespace, got.Now.Namespace, got.Now.Spec.TargetReference.Name, got.Before.Namespace,
			got.Before.Spec.TargetReference.Name, string(got.Raw), got.IsUpdate, len(got.Faults),
		}
		if d := cmp.Diff([]any{version == "v1alpha1", "shop", "shop", "bad", "shop", "good", now, true, 1}, is); d != "" {
			t.Errorf("%s (-want +got):\n%s", version, d)
		}
		plaintest.Answers(t, version, plaintest.Want{Code: 422, Paths: "spec.bad", Warnings: 1}, answer)
		answer = w[validate](t.Context(), plaintest.Request(plaintest.Kind("WorkloadSpread"), version, now, now))
		if len(answer.Warnings) != 2 || answer.Warnings[0] != "first" || !strings.HasPrefix(answer.Warnings[1], "spec.bad") {
			t.Errorf("%s: warnings %q", version, answer.Warnings)
		}
	}
}

// What only one version has is no request for a kind of one version, and a handler that panics rejects.
func TestVersionsAndPanics(t *testing.T) {
	of := spreads()
	of.Old = nil
	of.Validate = func(*spread) field.ErrorList { panic("boom") }
	w := serve(t, nil, of, kinds.Options{})
	request := func(version string) admission.Request {
		return plaintest.Request(plaintest.Kind("WorkloadSpread"), version, named("good"), "")
	}
	plaintest.Answers(t, "one version", plaintest.Want{Code: http.StatusBadRequest},
		w[validate](t.Context(), request("v1alpha1")))
	served := &admission.Webhook{Handler: w[validate]}
	plaintest.Answers(t, "a panic", plaintest.Want{Code: http.StatusInternalServerError},
		served.Handle(t.Context(), request("v1beta1")))
}

// jobs is a kind whose webhook completes objects.
func jobs() kinds.Row[*appsv1beta1.ImageListPullJob] {
	return kinds.Row[*appsv1beta1.ImageListPullJob]{
		Kind: appsv1beta1.GroupVersion.WithKind("ImageListPullJob"), Hub: &appsv1beta1.ImageListPullJob{}, MutatePath: mutate,
	}
}

func review(t *testing.T, of kinds.Row[*appsv1beta1.ImageListPullJob], now, stored string) plaintest.Answer {
	t.Helper()
	w := serve(t, (&plaintest.Server{}).Client(), of, kinds.Options{})
	return w[mutate](t.Context(), plaintest.Request(plaintest.Kind("ImageListPullJob"), "v1beta1", now, stored))
}

// Of a kind without a template, the patch has what Default changes, and nothing else.
func TestComplete(t *testing.T) {
	const always = `{"op":"add","path":"/spec/completionPolicy","value":{"type":"Always"}}`
	const pull = `{"op":"add","path":"/spec/pullPolicy","value":{"backoffLimit":3,"timeoutSeconds":600}}`
	for name, c := range map[string]struct{ why, now, want string }{
		"missing": {"all that is missing", `{"metadata":{},"spec":{"images":["a"],"new":1}}`, always + "," + pull},
		"present": {
			why: "what is there stays",
			now: `{"spec":{"completionPolicy":{"type":"Never"},"pullPolicy":{"backoffLimit":0,"timeoutSeconds":0}}}`,
		},
		"a wrong type": {"the schema says it better", `{"spec":{"images":7}}`, ""},
	} {
		t.Run(name, func(t *testing.T) { plaintest.Patches(t, c.why, c.want, review(t, jobs(), c.now, "")) })
	}
	plaintest.Answers(t, "null is no object", plaintest.Want{Code: 400}, review(t, jobs(), `null`, ""))
}

// Admit reviews and completes new objects; of an update only what is fixed is reviewed.
func TestAdmit(t *testing.T) {
	of := jobs()
	of.Admit = func(ctx context.Context, _ kinds.API, c kinds.Change[*appsv1beta1.ImageListPullJob]) (
		*appsv1beta1.ImageListPullJob, field.ErrorList, error,
	) {
		if _, is := ctx.Deadline(); !is {
			t.Error("there is no deadline")
		}
		switch {
		case slices.Contains(c.Now.Spec.Images, "unread"):
			return nil, nil, errors.New("down")
		case len(c.Now.Spec.Images) == 0:
			return nil, fault("spec.images"), nil
		}
		admitted := c.Now.DeepCopy()
		admitted.Labels = map[string]string{"a": "b"}
		return admitted, nil, nil
	}
	of.Fixed = func(c kinds.Change[*appsv1beta1.ImageListPullJob]) field.ErrorList {
		if slices.Equal(c.Now.Spec.Images, c.Before.Spec.Images) {
			return nil
		}
		return fault("spec.fixed")
	}
	const a, b = `{"metadata":{"name":"x"},"spec":{"images":["a"]}}`, `{"spec":{"images":["b"]}}`
	plaintest.Patches(t, "it is completed", `{"op":"add","path":"/metadata/labels","value":{"a":"b"}}`,
		review(t, of, a, ""))
	plaintest.Patches(t, "an update is not", ``, review(t, of, a, a))
	plaintest.Answers(t, "invalid", plaintest.Want{Code: 400, Paths: "spec.images"}, review(t, of, `{}`, ""))
	plaintest.Answers(t, "malformed", plaintest.Want{Code: 400, Paths: "spec.images"},
		review(t, of, `{"spec":{"images":7}}`, ""))
	plaintest.Answers(t, "unread", plaintest.Want{Code: 500}, review(t, of, `{"spec":{"images":["unread"]}}`, ""))
	plaintest.Answers(t, "fixed", plaintest.Want{Code: 403, Paths: "spec.fixed"}, review(t, of, b, a))
	of.Closed = "off"
	plaintest.Answers(t, "closed", plaintest.Want{Code: 403, Text: "off"}, review(t, of, a, ""))
	plaintest.Answers(t, "closed, leaving", plaintest.Want{},
		review(t, of, b, `{"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z"}}`))
	w := serve(t, (&plaintest.Server{}).Client(), of, kinds.Options{})
	deletion := plaintest.Request(plaintest.Kind("ImageListPullJob"), "v1beta1", "", a)
	deletion.Operation = admissionv1.Delete
	plaintest.Answers(t, "everything may be deleted", plaintest.Want{}, w[mutate](t.Context(), deletion))
}
