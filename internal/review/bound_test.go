package review_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
)

// templateOf returns an object whose template has variables and one long text.
func templateOf(variables, letters, replicas int) string {
	env := strings.TrimSuffix(strings.Repeat(`{"name": "A"},`, variables), ",")
	return fmt.Sprintf(`{"spec":{"replicas":%d,"podsToDelete":[%s],"template":{"text":%q,"env":[%s]}}}`,
		replicas, strings.TrimSuffix(strings.Repeat(`"web-1",`, 30_000), ","), strings.Repeat(`a\"{[,`, letters/6), env)
}

func TestOversized(t *testing.T) {
	const most = review.MaxTemplateValues/2 - 2 // two values of each variable, and those around them
	cases := map[string]struct {
		why, now, before string
		rejected         bool
	}{
		"as much as may be":  {"the limit is no fault", templateOf(most, 60, 1), "", false},
		"a variable more":    {"it would take megabytes in each replica", templateOf(most+1, 60, 1), "", true},
		"too many bytes":     {"the API server would store it", templateOf(1, review.MaxTemplateBytes, 1), "", true},
		"a long list beside": {"names of pods are no template", templateOf(1, 60, 1), "", false},
		"stored, scaled": {
			why:    "a user who may scale it may not be able to repair it",
			now:    templateOf(most+9, 60, 10),
			before: templateOf(most+9, 60, 9),
		},
		"stored, and less now":   {"a first step", templateOf(most+5, 60, 1), templateOf(most+9, 60, 1), false},
		"stored, and more now":   {"it becomes worse", templateOf(most+9, 60, 1), templateOf(most+5, 60, 1), true},
		"stored below the limit": {"it is a new fault", templateOf(most+9, 60, 1), templateOf(most, 60, 1), true},
		"other values, more text": {
			why:      "fewer values do not pay for text",
			now:      templateOf(1, review.MaxTemplateBytes+600, 1),
			before:   templateOf(most+9, 60, 1),
			rejected: true,
		},
		"no JSON": {"the decoder says what is wrong", strings.Repeat("{", 1<<20), "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(c.now)},
				Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "CloneSet"},
			}}
			if c.before != "" {
				req.Operation, req.OldObject.Raw = admissionv1.Update, []byte(c.before)
			}
			answer := review.Oversized(req, "template", "volumeClaimTemplates")
			if (answer != nil) != c.rejected {
				t.Fatalf("%s: %v", c.why, answer)
			}
			if answer != nil &&
				(answer.Result.Code != http.StatusUnprocessableEntity || answer.Result.Details.Causes[0].Field != "spec.template" ||
					!strings.Contains(answer.Result.Message, "move lists and variables into a ConfigMap")) {
				t.Errorf("%s: %+v", c.why, answer.Result)
			}
			req.Operation = admissionv1.Delete
			if review.Oversized(req, "template") != nil {
				t.Error("a deletion is rejected")
			}
		})
	}
}

// The values of text are those that a decoder makes of it.
func FuzzTemplateValues(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `{"a":[1,"x\\\"",{"b":null}, [ ] ,{ }]}`, `"{,["`, `[[[[]]],{"a":{"b":[{}]}}]`, `true`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil || strings.Count(text, `"`) > 0 && hasDuplicates(text) {
			return
		}
		if want, got := count(value), review.ValuesIn([]byte(text)); got != want {
			t.Errorf("%s has %d values, counted %d", text, want, got)
		}
	})
}

// hasDuplicates reports whether encoding what was decoded loses commas, as those of a key that stands twice.
func hasDuplicates(text string) bool {
	var value any
	_ = json.Unmarshal([]byte(text), &value)
	again, _ := json.Marshal(value)
	return strings.Count(string(again), ":") != strings.Count(text, ":")
}

func count(value any) int {
	n := 1
	switch v := value.(type) {
	case map[string]any:
		for _, below := range v {
			n += count(below)
		}
	case []any:
		for _, below := range v {
			n += count(below)
		}
	}
	return n
}

// A UnitedDeployment may have 512 subsets, each with terms, tolerations and a patch.
func TestTopologyOfManySubsets(t *testing.T) {
	const one = `{"name":"a","nodeSelectorTerm":{"matchExpressions":[{"key":"a","operator":"In","values":["b"]},{"key":"c","operator":"In","values":["d"]}]},` +
		`"tolerations":[{"key":"a","operator":"Exists","effect":"NoSchedule"},{"key":"b","operator":"Exists","effect":"NoSchedule"}],` +
		`"patch":{"spec":{"containers":[{"name":"a","env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"C","value":"3"},{"name":"D","value":"4"},{"name":"E","value":"5"}]}]}}}`
	topology := func(subsets int) admission.Request {
		text := `{"spec":{"topology":{"subsets":[` + strings.TrimSuffix(strings.Repeat(one+",", subsets), ",") + `]}}}`
		return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(text)},
			Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "UnitedDeployment"},
		}}
	}
	if answer := review.Oversized(topology(512), "template", "topology"); answer != nil {
		t.Errorf("512 subsets: %+v", answer.Result)
	}
	if review.Oversized(topology(1024), "template", "topology") == nil {
		t.Error("1024 subsets pass")
	}
}
