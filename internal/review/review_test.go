package review_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
)

func newRequest(operation admissionv1.Operation) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation,
	}}
}

func TestConcerns(t *testing.T) {
	status := newRequest(admissionv1.Update)
	status.SubResource = "status"
	cases := map[string]struct {
		request admission.Request
		want    bool
	}{
		"create": {newRequest(admissionv1.Create), true},
		"update": {newRequest(admissionv1.Update), true},
		"delete": {newRequest(admissionv1.Delete), false},
		"status": {status, false},
	}
	for name, c := range cases {
		if got := review.Concerns(c.request); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLeaving(t *testing.T) {
	const deleted = `{"metadata":{"deletionTimestamp":"2024-05-06T07:08:09Z"},"spec":7}`
	cases := map[string]struct {
		why       string
		operation admissionv1.Operation
		stored    string
		want      bool
	}{
		"leaving":    {"the rest of it does not matter", admissionv1.Update, deleted, true},
		"staying":    {"nobody deleted it", admissionv1.Update, `{"metadata":{"name":"a"}}`, false},
		"new":        {"it cannot be on its way out", admissionv1.Create, deleted, false},
		"unreadable": {"the cause is unknown", admissionv1.Update, `{"metadata":7}`, false},
		"nothing":    {"the cause is unknown", admissionv1.Update, ``, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRequest(c.operation)
			r.OldObject = runtime.RawExtension{Raw: []byte(c.stored)}
			if got := review.IsDeleting(r); got != c.want {
				t.Errorf("%s: %v", c.why, got)
			}
		})
	}
}

func TestUnmarshal(t *testing.T) {
	cases := map[string]struct{ why, raw, want string }{
		"good": {"case matters", `{"Spec":{"podName":7},"spec":{"podName":"p"}}`, ""},
		"wrong type": {
			"the place is known", `{"spec":{"podName":7}}`, "decode object: spec.podName: a number where string is wanted",
		},
		"no object": {"nor null", ``, "decode object: the request has none"},
		"no JSON":   {"nobody knows what it is", `{`, "decode object: unexpected end of JSON input"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			err := review.Unmarshal([]byte(c.raw), &request{})
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
	if _, err := review.Decode([]byte("null")); err == nil {
		t.Error("null is no object")
	}
}

// TestAnswers are the codes and words that clients see.
func TestAnswers(t *testing.T) {
	spec := field.NewPath("spec")
	faults := field.ErrorList{
		field.Required(spec.Child("image"), "which?"), field.Invalid(spec.Child("parallelism"), "-1", "must not be negative"),
	}
	cause := func(kind metav1.CauseType, at, message string) metav1.StatusCause {
		return metav1.StatusCause{Type: kind, Field: at, Message: message}
	}
	all := []metav1.StatusCause{
		cause("FieldValueRequired", "spec.image", "Required value: which?"),
		cause("FieldValueInvalid", "spec.parallelism", `Invalid value: "-1": must not be negative`),
	}
	const told = `spec.image: Required value: which?; spec.parallelism: Invalid value: "-1": must not be negative`
	cases := map[string]struct {
		answer admission.Response
		want   metav1.Status
	}{
		"wrong": {
			review.Rejected(400, faults),
			metav1.Status{Code: 400, Reason: "BadRequest", Message: told, Details: &metav1.StatusDetails{Causes: all}},
		},
		"fixed": {
			review.Rejected(403, faults),
			metav1.Status{Code: 403, Reason: "Forbidden", Message: told, Details: &metav1.StatusDetails{Causes: all}},
		},
		"forbidden": {review.Forbidden("no"), metav1.Status{Code: 403, Reason: "Forbidden", Message: "no"}},
		"odd":       {review.BadRequest(errors.New("odd")), metav1.Status{Code: 400, Reason: "BadRequest", Message: "odd"}},
		"odd at a known place": {
			review.BadRequest(&review.TypeError{Path: "spec.image", Found: "number", Wanted: "string"}),
			metav1.Status{
				Code:    400,
				Reason:  "BadRequest",
				Message: "spec.image: a number where string is wanted",
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
					cause("FieldValueTypeInvalid", "spec.image", "spec.image: a number where string is wanted"),
				}},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.want.Status = "Failure"
			if diff := cmp.Diff(&c.want, c.answer.Result); diff != "" || c.answer.Allowed {
				t.Errorf("allowed %v (-want +got):\n%s", c.answer.Allowed, diff)
			}
		})
	}
	if answer := review.Patched(nil); !answer.Allowed || answer.Patch != nil || answer.PatchType != nil {
		t.Errorf("an empty patch is none: %+v", answer)
	}
}

// TestManyFaults: an answer has some of many faults.
func TestManyFaults(t *testing.T) {
	var faults field.ErrorList
	for i := range 101 {
		faults = append(faults, field.Invalid(field.NewPath("spec", "images").Index(i), "a", "odd"))
	}
	for name, answer := range map[string]func(field.ErrorList) admission.Response{
		"422": func(f field.ErrorList) admission.Response { return review.Invalid(schema.GroupKind{Kind: "A"}, "a", f) },
		"400": func(f field.ErrorList) admission.Response { return review.Rejected(400, f) },
	} {
		for _, n := range []int{100, 101} {
			result := answer(faults[:n]).Result
			if more := strings.HasSuffix(result.Message, " (and more)"); len(result.Details.Causes) != 100 || more != (n > 100) {
				t.Errorf("%s for %d faults: %d causes, and more: %t", name, n, len(result.Details.Causes), more)
			}
		}
	}
	for _, n := range []int{100, 101} {
		warnings := review.Warned(admission.Allowed(""), faults[:n]).Warnings
		if more := strings.HasSuffix(warnings[99], " (and more)"); len(warnings) != 100 || more != (n > 100) {
			t.Errorf("%d warnings of %d faults, and more: %t", len(warnings), n, more)
		}
	}
}

func TestAdded(t *testing.T) {
	at := field.NewPath("spec", "images")
	odd, many, more := field.Invalid(at, "a", "odd"), field.TooMany(at, 300, 256), field.TooMany(at, 301, 256)
	cases := map[string]struct {
		why                   string
		faults, had           field.ErrorList
		wantAdded, wantsBorne int
	}{
		"the same": {"it was there", field.ErrorList{field.Invalid(at, "a", "odd")}, field.ErrorList{odd}, 0, 1},
		"another": {
			why:       "it is of this change",
			faults:    field.ErrorList{field.Invalid(at, "b", "odd")},
			had:       field.ErrorList{odd},
			wantAdded: 1,
		},
		"still too many": {"it gets better", field.ErrorList{many}, field.ErrorList{more}, 0, 1},
		"more too many":  {"it gets worse", field.ErrorList{more}, field.ErrorList{many}, 1, 0},
		"good before":    {"all is new", field.ErrorList{odd, many}, nil, 2, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			added, borne := review.Added(c.faults, c.had)
			if len(added) != c.wantAdded || len(borne) != c.wantsBorne {
				t.Errorf("%s: added %v, borne %v", c.why, added, borne)
			}
		})
	}
}
