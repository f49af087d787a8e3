package statefulset_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/webhooks/statefulset"
)

// strictServer rejects what an API server rejects in a pod template: mounts of unknown volumes, and containers without an image.
func strictServer() client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			at := field.NewPath("template", "spec")
			spec := obj.(*unstructured.Unstructured).Object["template"].(map[string]any)["spec"].(map[string]any)
			volumes, _ := spec["volumes"].([]any)
			var faults field.ErrorList
			for i, c := range spec["containers"].([]any) {
				container := c.(map[string]any)
				if container["image"] == nil {
					faults = append(faults, field.Required(at.Child("containers").Index(i).Child("image"), ""))
				}
				mounts, _ := container["volumeMounts"].([]any)
				for j, m := range mounts {
					name := m.(map[string]any)["name"]
					if !slices.ContainsFunc(volumes, func(v any) bool { return v.(map[string]any)["name"] == name }) {
						faults = append(faults, field.NotFound(at.Child("containers").Index(i).Child("volumeMounts").Index(j).Child("name"), name))
					}
				}
			}
			if spec["dnsPolicy"] == "Wrong" {
				faults = append(faults, field.NotSupported(at.Child("dnsPolicy"), "Wrong", []string{"ClusterFirst"}))
			}
			if len(faults) > 0 {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "", faults)
			}
			spec["terminationGracePeriodSeconds"] = int64(30)
			return nil
		},
	})
}

// A template that lacks what another pod webhook adds is admitted with a warning, as the reference does without one.
func TestIncompleteTemplates(t *testing.T) {
	const mount = `"volumeMounts":[{"name":"data","mountPath":"/d"},{"name":"injected","mountPath":"/i"}]`
	for name, c := range map[string]struct {
		why, pod, warning, fault string
		defaults                 bool
	}{
		"an injected volume":  {"a SidecarSet may add the volume", `"containers":[{"name":"main","image":"app:1",` + mount + `}]`, `spec.template.spec.containers[0].volumeMounts[1].name: Not found: "injected"`, "", true},
		"an injected image":   {"a webhook may set the image", `"containers":[{"name":"main"}]`, "spec.template.spec.containers[0].image: Required value", "", false},
		"a fault beside it":   {"no webhook adds what is wrong", `"dnsPolicy":"Wrong","containers":[{"name":"main","image":"app:1",` + mount + `}]`, "", "spec.template.spec.dnsPolicy", false},
		"nothing to be added": {"the template is complete", `"containers":[{"name":"main","image":"app:1"}]`, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := statefulset.New(strictServer(), statefulset.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := newRequest(t, "v1beta1", "", `{"template":{"spec":{`+c.pod+`}}}`)
			validated := w.Validate(t.Context(), r)
			if validated.Allowed != (c.fault == "") {
				t.Fatalf("%s: %+v", c.why, validated.Result)
			}
			if c.fault != "" {
				causes := validated.Result.Details.Causes
				if len(causes) != 1 || causes[0].Field != c.fault {
					t.Errorf("%s: causes %+v, want one at %s", c.why, causes, c.fault)
				}
				return
			}
			mutated := w.Mutate(t.Context(), r)
			for _, warnings := range [][]string{validated.Warnings, mutated.Warnings} {
				if (c.warning == "") != (len(warnings) == 0) || len(warnings) > 0 && !strings.HasPrefix(warnings[0], c.warning) {
					t.Errorf("%s: warnings %q, want %q", c.why, warnings, c.warning)
				}
			}
			patch := string(mutated.Patch)
			for _, p := range mutated.Patches {
				patch += p.Json()
			}
			if !strings.Contains(patch, "Always") || strings.Contains(patch, "dry-run") || strings.Contains(patch, "terminationGracePeriodSeconds") != c.defaults {
				t.Errorf("%s: patch %s", c.why, patch)
			}
		})
	}
}
