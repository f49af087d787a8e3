package podtemplate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// DefaultTimeout leaves the API server, which gives a webhook ten seconds by default, time to receive the reason for a
// missing verdict.
const DefaultTimeout = 8 * time.Second

// API is the method of client.Client that Check calls.
type API interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// Template is a pod template, and where it stands in the workload.
type Template struct {
	// Namespace of the workload.
	Namespace string
	// Content of the template, as decoded from JSON.
	Content map[string]any
	// Path of the template in the workload.
	Path *field.Path
	// Claims are the names of claim templates. Each is a volume of the pods, and replaces one of the same name.
	Claims []string
	// ClaimsPath is the path of the list of claim templates.
	ClaimsPath *field.Path
	// Incomplete accepts a template that another pod webhook may complete: see Verdict.Missing.
	Incomplete bool
	// TellUnknown returns the fields that the API server does not know, such as misspelt ones. It costs a second call only
	// if there are any.
	TellUnknown bool
	// Timeout of all calls. Default DefaultTimeout.
	Timeout time.Duration
}

// Verdict is the answer of the API server about a template.
type Verdict struct {
	// Defaulted is the template with all defaults, if there are no faults. Nil also where more than volumes is missing.
	Defaulted map[string]any
	// Faults name the invalid fields by their paths in the workload.
	Faults field.ErrorList
	// Missing are, if Incomplete is set, the faults of what the template lacks and a pod webhook may add: a volume that a
	// container mounts, a resource claim, a required field. They are no faults of the template.
	Missing field.ErrorList
	// Unknown are the paths in the workload of unknown fields, with faults or without, if TellUnknown is set. They are no
	// faults: the API server drops them from pods.
	Unknown []string
	// Newer are the paths in the workload of fields that the API server knows, and the types of this module lack, if
	// TellUnknown is set.
	Newer []string
}

// Check validates and defaults a template by a dry run. The error is an *UnavailableError.
func Check(ctx context.Context, api API, t Template) (Verdict, error) {
	if t.Timeout <= 0 {
		t.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()

	content := runtime.DeepCopyJSON(t.Content)
	mocks, missing := t.mockVolumes(content)
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "PodTemplate",
		"metadata":   map[string]any{"generateName": "dry-run-", "namespace": t.Namespace},
		"template":   content,
	}}
	unknown, err := t.create(ctx, api, obj, mocks)
	if err != nil {
		if faults := faultsIn(err, t, mocks); len(faults) > 0 {
			if t.Incomplete {
				lacks, wrong := absent(faults)
				missing, faults = append(missing, lacks...), wrong
			}
			return Verdict{Faults: faults, Missing: missing, Unknown: unknown}, nil
		}
		return Verdict{}, unavailable(ctx, t.Namespace, err)
	}
	defaulted, _, _ := unstructured.NestedMap(obj.Object, "template")
	dropMocks(defaulted, len(mocks.paths))
	dropAlias(defaulted, t.Content)
	return Verdict{Defaulted: defaulted, Missing: missing, Unknown: unknown, Newer: t.newer(unknown)}, nil
}

// newer returns the fields that the types lack, without those that are unknown to the API server.
func (t Template) newer(unknown []string) (paths []string) {
	encoded, err := json.Marshal(t.Content)
	if err != nil || !t.TellUnknown {
		return nil
	}
	lacking, _ := kjson.UnmarshalStrict(encoded, &corev1.PodTemplateSpec{}, kjson.DisallowUnknownFields)
	for _, err := range lacking {
		var at kjson.FieldError
		if !errors.As(err, &at) {
			continue
		}
		if path := t.Path.String() + "." + at.FieldPath(); !slices.Contains(unknown, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// create is the dry run. An unknown field is kept in the workload, as the schema says; it is reported if TellUnknown is
// set, and then left out of the validation.
func (t Template) create(
	ctx context.Context, api API, obj *unstructured.Unstructured, m mocks,
) (unknown []string, err error) {
	if t.TellUnknown {
		err = api.Create(ctx, obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if !apierrors.IsBadRequest(err) {
			return nil, err
		}
		// Whatever its text: no template is rejected for an unknown field.
		unknown = unknownIn(err, t, m)
	}
	return unknown, api.Create(ctx, obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationIgnore))
}

// dropMocks removes the last n volumes.
func dropMocks(template map[string]any, n int) {
	spec, _ := template["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	switch {
	case spec == nil || n == 0 || n > len(volumes):
	case n == len(volumes):
		delete(spec, "volumes")
	default:
		spec["volumes"] = volumes[:len(volumes)-n]
	}
}

// dropAlias removes what the API server only repeats for old clients: with it the template would look as if the user
// had changed a field that no running pod can change.
func dropAlias(template, content map[string]any) {
	const alias = "serviceAccount"
	had, _ := content["spec"].(map[string]any)
	spec, _ := template["spec"].(map[string]any)
	if _, ok := had[alias]; !ok {
		delete(spec, alias)
	}
}
