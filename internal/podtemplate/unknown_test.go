package podtemplate_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
)

// TestUnknown: unknown fields are reported where the caller asks for it, and cost a call only where there are some.
func TestUnknown(t *testing.T) {
	strict := func(what string) error {
		return apierrors.NewBadRequest(
			`PodTemplate in version "v1" cannot be handled as a PodTemplate: strict decoding error: ` + what)
	}
	fault := apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "", field.ErrorList{
		field.Required(field.NewPath("template", "spec", "x"), ""),
	})
	const strictly, anyway = metav1.FieldValidationStrict, metav1.FieldValidationIgnore
	cases := map[string]struct {
		why            string
		tell           bool
		strict, lax    error
		asked          []string
		unknown, fault []string
		fails          bool
	}{
		"not wanted": {"there is one call", false, nil, nil, []string{anyway}, nil, nil, false},
		"some": {
			why:  "all are named as the user knows them, whatever is in them",
			tell: true,
			strict: strict(
				`unknown field "template.spec.containers[0].comand", unknown field "template.spec.a\", unknown field \"b"`),
			asked:   []string{strictly, anyway},
			unknown: []string{"spec.template.spec.containers[0].comand", `spec.template.spec.a", unknown field "b`},
		},
		"with a fault": {
			why:     "one may explain the other",
			tell:    true,
			strict:  strict(`unknown field "template.spec.y"`),
			lax:     fault,
			asked:   []string{strictly, anyway},
			unknown: []string{"spec.template.spec.y"},
			fault:   []string{"spec.template.spec.x"},
		},
		"no quotes": {
			why: "it is no fault", tell: true, strict: strict("unknown field x"), asked: []string{strictly, anyway},
		},
		"no verdict": {
			why:    "the template is not judged",
			tell:   true,
			strict: strict(`unknown field "template.y"`),
			lax:    errors.New("boom"),
			asked:  []string{strictly, anyway},
			fails:  true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var asked []string
			api := interceptor.NewClient(nil, interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption) error {
					var o client.CreateOptions
					o.ApplyOptions(opts)
					asked = append(asked, o.FieldValidation)
					if len(o.DryRun) == 0 {
						t.Error("this would be stored")
					}
					if o.FieldValidation == strictly {
						return c.strict
					}
					return c.lax
				},
			})
			verdict, err := podtemplate.Check(t.Context(), api, podtemplate.Template{
				Content: decode(t, `{"spec":{}}`), Path: field.NewPath("spec", "template"), TellUnknown: c.tell,
			})
			var faults []string
			for _, f := range verdict.Faults {
				faults = append(faults, f.Field)
			}
			if diff := cmp.Diff([][]string{c.asked, c.unknown, c.fault}, [][]string{
				asked, verdict.Unknown, faults,
			}); diff != "" || (err != nil) != c.fails {
				t.Errorf("%s: %v (-want +got):\n%s", c.why, err, diff)
			}
		})
	}
}

// Fields that the API server knows, and the types of this module lack, are reported as newer.
func TestNewer(t *testing.T) {
	content := `{"metadata":{"newer":1},"spec":{"misspelt":2,"containers":[{"name":"a"},{"name":"b","newer":3}]}}`
	api := interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption) error {
			if o := (&client.CreateOptions{}).ApplyOptions(opts); o.FieldValidation == metav1.FieldValidationStrict {
				return apierrors.NewBadRequest(`strict decoding error: unknown field "template.spec.misspelt"`)
			}
			return nil
		},
	})
	for tell, want := range map[bool][]string{
		true: {"spec.template.metadata.newer", "spec.template.spec.containers[1].newer"}, false: nil,
	} {
		verdict, err := podtemplate.Check(t.Context(), api, podtemplate.Template{
			Content: decode(t, content), Path: field.NewPath("spec", "template"), TellUnknown: tell,
		})
		slices.Sort(verdict.Newer)
		if diff := cmp.Diff(want, verdict.Newer); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}
