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

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/statefulset"
)

// strictServer rejects what an API server rejects in a pod template: mounts of unknown volumes, and containers without
// an image.
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
						mount := at.Child("containers").Index(i).Child("volumeMounts").Index(j)
						faults = append(faults, field.NotFound(mount.Child("name"), name))
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
		"an injected volume": {
			why: "a SidecarSet may add the volume", pod: `"containers":[{"name":"main","image":"app:1",` + mount + `}]`,
			warning: `spec.template.spec.containers[0].volumeMounts[1].name: Not found: "injected"`, defaults: true,
		},
		"an injected image": {
			why: "a webhook may set the image", pod: `"containers":[{"name":"main"}]`,
			warning: "spec.template.spec.containers[0].image: Required value",
		},
		"a fault beside it": {
			why:   "no webhook adds what is wrong",
			pod:   `"dnsPolicy":"Wrong","containers":[{"name":"main","image":"app:1",` + mount + `}]`,
			fault: "spec.template.spec.dnsPolicy",
		},
		"nothing to be added": {"the template is complete", `"containers":[{"name":"main","image":"app:1"}]`, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			change := [3]string{"v1beta1", "", `{"template":{"spec":{` + c.pod + `}}}`}
			validated := review(t, strictServer(), statefulset.Options{}, statefulset.ValidatePath, change)
			if c.fault != "" {
				plaintest.Answers(t, c.why, plaintest.Want{Code: 422, Paths: c.fault, Warnings: 1}, validated)
				return
			}
			mutated := review(t, strictServer(), statefulset.Options{}, statefulset.MutatePath, change)
			got := validated.Warnings
			if !validated.Allowed || (c.warning == "") != (len(got) == 0) || len(got) > 0 &&
				!strings.HasPrefix(got[0], c.warning) {
				t.Errorf("%s: %+v, warnings %q, want %q", c.why, validated.Result, got, c.warning)
			}
			patch := string(mutated.Patch)
			if !mutated.Allowed || !strings.Contains(patch, "Always") || strings.Contains(patch, "dry-run") ||
				strings.Contains(patch, "terminationGracePeriodSeconds") != c.defaults {
				t.Errorf("%s: patch %s", c.why, patch)
			}
		})
	}
}
