package podtemplate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
)

// server answers a creation.
func server(answer func(ctx context.Context, sent *unstructured.Unstructured) error) podtemplate.API {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(ctx context.Context, _ client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			var o client.CreateOptions
			o.ApplyOptions(opts)
			if len(o.DryRun) == 0 || o.FieldValidation != metav1.FieldValidationIgnore {
				return errors.New("this would be stored, or complain of unknown fields")
			}
			return answer(ctx, obj.(*unstructured.Unstructured))
		},
	})
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		why, content string
		claims       []string
		sent, want   string
	}{
		"claims": {
			why:     "they are volumes while the template is judged",
			content: `{"spec":{}}`,
			claims:  []string{"x"},
			sent:    `{"spec":{"volumes":[{"name":"x","persistentVolumeClaim":{"claimName":"dry-run"}}]}}`,
			want:    `{"spec":{"default":true}}`,
		},
		"the same": {
			why:     "a claim takes the place of a volume",
			content: `{"spec":{"volumes":[{"name":"x"},null]}}`,
			claims:  []string{"x"},
			sent:    `{"spec":{"volumes":[{"name":"x"},null]}}`,
			want:    `{"spec":{"default":true,"volumes":[{"name":"x"},null]}}`,
		},
		"odd volumes": {
			why:     "the API server refuses them",
			content: `{"spec":{"volumes":7}}`,
			claims:  []string{"x"},
			sent:    `{"spec":{"volumes":7}}`,
			want:    `{"spec":{"default":true,"volumes":7}}`,
		},
		"no spec": {"the API server refuses it", `{}`, []string{"x"}, `{}`, `{}`},
		"an alias": {
			why:     "what is only repeated is no default",
			content: `{"spec":{"serviceAccountName":"x"}}`,
			sent:    `{"spec":{"serviceAccountName":"x"}}`,
			want:    `{"spec":{"default":true,"serviceAccountName":"x"}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var sent map[string]any
			api := server(func(_ context.Context, obj *unstructured.Unstructured) error {
				if obj.GetNamespace() != "ns" || obj.GetGenerateName() == "" || obj.GetKind() != "PodTemplate" {
					t.Errorf("sent %v", obj)
				}
				template := obj.Object["template"].(map[string]any)
				sent = runtime.DeepCopyJSON(template)
				if pod, ok := template["spec"].(map[string]any); ok {
					pod["default"] = true
					if pod["serviceAccountName"] != nil {
						pod["serviceAccount"] = pod["serviceAccountName"]
					}
				}
				return nil
			})
			content := decode(t, c.content)
			verdict, err := podtemplate.Check(t.Context(), api, podtemplate.Template{
				Namespace: "ns", Content: content, Path: field.NewPath("spec", "template"), Claims: c.claims,
			})
			if err != nil || len(verdict.Faults) > 0 {
				t.Fatal(err, verdict.Faults)
			}
			want := []any{decode(t, c.content), decode(t, c.sent), decode(t, c.want)}
			if diff := cmp.Diff(want, []any{content, sent, verdict.Defaulted}); diff != "" {
				t.Errorf("%s: input, sent and defaulted (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// What another pod webhook may add is missing, and no fault.
func TestIncomplete(t *testing.T) {
	at := field.NewPath("template", "spec")
	const mounting = `{"spec":{"volumes":[{"name":"v"}],"initContainers":[null,{"volumeDevices":[{"name":"x"}]}],
		"containers":[{"volumeMounts":[{"name":"v"},{"name":"claim"},{"name":"x"},7,{"name":"A b"},{}]},{"volumeMounts":7}]}}`
	cases := map[string]struct {
		why, content    string
		answer          field.ErrorList
		volumes         string
		missing, faults []string
	}{
		"mounts": {
			why:     "each missing volume has a mock",
			content: mounting,
			volumes: "v claim x",
			missing: []string{
				"spec.template.spec.initContainers[1].volumeDevices[0].name",
				"spec.template.spec.containers[0].volumeMounts[2].name",
			},
		},
		"faults": {
			"a mock that is wrong is that of the mount", mounting,
			field.ErrorList{
				field.Invalid(at.Child("volumes").Index(2).Child("name"), "x", "no"),
				field.Required(at.Child("containers").Index(0).Child("image"), ""),
				field.NotFound(at.Child("containers").Index(0).Child("resources", "claims").Index(0).Child("name"), "gpu"),
				field.Invalid(at.Child("dnsPolicy"), "x", "no"),
			},
			"v claim x",
			[]string{
				"spec.template.spec.initContainers[1].volumeDevices[0].name",
				"spec.template.spec.containers[0].volumeMounts[2].name",
				"spec.template.spec.containers[0].image", "spec.template.spec.containers[0].resources.claims[0].name",
			},
			[]string{"spec.template.spec.initContainers[1].volumeDevices[0].name", "spec.template.spec.dnsPolicy"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var volumes []string
			verdict, err := podtemplate.Check(t.Context(), server(func(_ context.Context, obj *unstructured.Unstructured) error {
				list, _ := obj.Object["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)
				for _, v := range list {
					volumes = append(volumes, v.(map[string]any)["name"].(string))
				}
				if len(c.answer) > 0 {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "", c.answer)
				}
				return nil
			}), podtemplate.Template{
				Content: decode(t, c.content), Path: field.NewPath("spec", "template"),
				Claims: []string{"claim"}, ClaimsPath: field.NewPath("spec", "claims"), Incomplete: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			paths := func(faults field.ErrorList) (all []string) {
				for _, f := range faults {
					all = append(all, f.Field)
				}
				return all
			}
			want := [][]string{strings.Fields(c.volumes), c.missing, c.faults}
			if diff := cmp.Diff(want,
				[][]string{volumes, paths(verdict.Missing), paths(verdict.Faults)}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: volumes, missing and faults (-want +got):\n%s", c.why, diff)
			}
			if defaulted, _, _ := unstructured.NestedSlice(verdict.Defaulted, "spec", "volumes"); len(c.answer) == 0 &&
				len(defaulted) > 1 {
				t.Errorf("%s: volumes %v are left", c.why, defaulted)
			}
		})
	}
}

// What a template mounts and lacks is known without a call, for callers that change a template that was admitted so.
func TestUnknownVolumes(t *testing.T) {
	for content, want := range map[string]string{
		`{"spec":{"volumes":[{"name":"v"}],"initContainers":[{"volumeMounts":[{"name":"x"},{"name":"claim"}]}],"containers":[{"volumeMounts":[{"name":"v"},{"name":"x"},{"name":"y"}]}]}}`: "x y",
		`{"spec":{"containers":7}}`: "", `{}`: "",
	} {
		if got := strings.Join(podtemplate.Unknown(decode(t, content), []string{"claim"}), " "); got != want {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	kind := schema.GroupKind{Kind: "PodTemplate"}
	at := field.NewPath("template", "spec")
	noCauses := apierrors.NewInvalid(kind, "", nil)
	cases := map[string]struct {
		why  string
		err  error
		want []string
	}{
		"several": {
			"each keeps its type", apierrors.NewInvalid(kind, "", field.ErrorList{
				field.Required(at.Child("x"), ""), field.Forbidden(at.Child("y"), "no"),
				field.Duplicate(at.Child("volumes").Index(0).Child("name"), "v"),
			}),
			[]string{
				"spec.template.spec.x: Required value", "spec.template.spec.y: Forbidden: no",
				`spec.template.spec.volumes[0].name: Duplicate value: "v"`,
			},
		},
		"a claim": {
			"the volume that stands for it is not the user's", apierrors.NewInvalid(kind, "", field.ErrorList{
				field.Invalid(at.Child("volumes").Index(1).Child("name"), "x y", "no"),
			}),
			[]string{`spec.claims[0].metadata.name: Invalid value: "x y": no`},
		},
		"odd indices": {
			"paths that mean nothing stay", apierrors.NewInvalid(kind, "", field.ErrorList{
				field.Required(at.Child("volumes").Index(99), ""), field.Required(at.Child("volumes").Key("q"), ""),
			}),
			[]string{"spec.template.spec.volumes[99]: Required value", "spec.template.spec.volumes[q]: Required value"},
		},
		"elsewhere": {
			"what is not in the template is still about it",
			apierrors.NewInvalid(kind, "", field.ErrorList{field.Invalid(field.NewPath("templates"), "x", "no")}),
			[]string{`spec.template: Invalid value: "x": no`},
		},
		"no cause": {
			"a policy says only why", noCauses, []string{"spec.template: Invalid value: " + noCauses.ErrStatus.Message},
		},
		"a type": {
			"the API server stops there",
			apierrors.NewBadRequest("PodTemplate in version v1 cannot be handled as a PodTemplate: x"),
			[]string{"spec.template: Invalid value: PodTemplate in version v1 cannot be handled as a PodTemplate: x"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			verdict, err := podtemplate.Check(t.Context(),
				server(func(context.Context, *unstructured.Unstructured) error { return c.err }), podtemplate.Template{
					Content: decode(t, `{"spec":{"volumes":[{"name":"v"}]}}`), Path: field.NewPath("spec", "template"),
					Claims: []string{"x y"}, ClaimsPath: field.NewPath("spec", "claims"),
				})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range verdict.Faults {
				got = append(got, f.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestUnavailable(t *testing.T) {
	templates := schema.GroupResource{Resource: "podtemplates"}
	terminating := apierrors.NewForbidden(templates, "", errors.New("unable to create new content"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[podtemplate.Reason]error{
		podtemplate.NotPermitted: apierrors.NewForbidden(templates, "",
			errors.New(`User "x" cannot create resource "podtemplates"`)),
		podtemplate.Refused:              apierrors.NewBadRequest("admission webhook does not support dry run"),
		podtemplate.NamespaceTerminating: terminating,
		podtemplate.NamespaceMissing:     apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"),
		podtemplate.TimedOut:             apierrors.NewServerTimeout(templates, "create", 1),
		podtemplate.Failed:               errors.New("boom"),
	}
	// Of a policy's denial the reason is Invalid unless the policy chooses another, and it has causes, as an invalid field
	// has.
	policy := apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "x", field.ErrorList{
		field.Forbidden(nil, "failed expression: false"),
	})
	policy.ErrStatus.Message = `podtemplates "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: false`
	webhook := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: 422, Reason: metav1.StatusReasonInvalid, Message: `admission webhook "w" denied the request: no`,
	}}
	for _, cause := range []error{policy, webhook} {
		verdict, err := podtemplate.Check(t.Context(),
			server(func(context.Context, *unstructured.Unstructured) error { return cause }),
			podtemplate.Template{Namespace: "ns", Path: field.NewPath("template")})
		var got *podtemplate.UnavailableError
		if !errors.As(err, &got) || got.Reason != podtemplate.Refused || len(verdict.Faults) > 0 {
			t.Errorf("a rule for podtemplates is no fault of a template: %v, %v", verdict.Faults, err)
		}
	}
	for want, cause := range cases {
		_, err := podtemplate.Check(t.Context(),
			server(func(context.Context, *unstructured.Unstructured) error { return cause }),
			podtemplate.Template{Namespace: "ns"})
		var got *podtemplate.UnavailableError
		if !errors.As(err, &got) || got.Reason != want || got.Namespace != "ns" || !errors.Is(err, cause) ||
			len(err.Error()) <= len(cause.Error()) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	_, err := podtemplate.Check(t.Context(), server(func(ctx context.Context, _ *unstructured.Unstructured) error {
		<-ctx.Done()
		return ctx.Err()
	}), podtemplate.Template{Timeout: 1})
	var got *podtemplate.UnavailableError
	if !errors.As(err, &got) || got.Reason != podtemplate.TimedOut {
		t.Errorf("want a time-out, got %v", err)
	}
}

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}
