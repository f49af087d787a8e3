package podtemplate

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultTimeout leaves the API server, which gives a webhook ten seconds by default, time to hear why there is no verdict.
const DefaultTimeout = 8 * time.Second

// API is what Check needs; client.Client has it.
type API interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// Template is what is judged, and where it stands in the object of the user.
type Template struct {
	// Namespace of the workload.
	Namespace string
	// Content of the template, as decoded from JSON.
	Content map[string]any
	// Path of the template in the workload.
	Path *field.Path
	// Claims are names of claim templates. Each is a volume of the pods, in place of one of the same name.
	Claims []string
	// ClaimsPath is the path of the list of claim templates.
	ClaimsPath *field.Path
	// TellUnknown asks for the fields that the API server does not know, as misspelt ones are. Only where there are any it
	// costs a second call.
	TellUnknown bool
	// Timeout of all calls; zero is DefaultTimeout.
	Timeout time.Duration
}

// Verdict is what the API server says about a template.
type Verdict struct {
	// Defaulted is the template with all defaults, when there are no faults.
	Defaulted map[string]any
	// Faults name the fields that are wrong, by their paths in the workload.
	Faults field.ErrorList
	// Unknown are the paths in the workload of fields that the API server does not know, with faults or without, where they
	// were asked for. They are no faults: the API server leaves them out of pods.
	Unknown []string
}

// Check asks the API server. The error is an *UnavailableError.
func Check(ctx context.Context, api API, t Template) (Verdict, error) {
	if t.Timeout <= 0 {
		t.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()

	content := runtime.DeepCopyJSON(t.Content)
	mocks := mockClaims(content, t.Claims)
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "PodTemplate",
		"metadata":   map[string]any{"generateName": "dry-run-", "namespace": t.Namespace},
		"template":   content,
	}}
	unknown, err := t.create(ctx, api, obj, mocks)
	if err != nil {
		if faults := faultsIn(err, t, mocks); len(faults) > 0 {
			return Verdict{Faults: faults, Unknown: unknown}, nil
		}
		return Verdict{}, unavailable(ctx, t.Namespace, err)
	}
	defaulted, _, _ := unstructured.NestedMap(obj.Object, "template")
	dropMocks(defaulted, len(mocks.claims))
	dropAlias(defaulted, t.Content)
	return Verdict{Defaulted: defaulted, Unknown: unknown}, nil
}

// create is the dry run. A field that this API server does not know is kept in the workload, as the schema says: it is told
// where that is wanted, and then left out of the judgement.
func (t Template) create(ctx context.Context, api API, obj *unstructured.Unstructured, m mocks) (unknown []string, err error) {
	if t.TellUnknown {
		err = api.Create(ctx, obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if !apierrors.IsBadRequest(err) {
			return nil, err
		}
		// Whatever its words are: no template is refused for a field that is not known.
		unknown = unknownIn(err, t, m)
	}
	return unknown, api.Create(ctx, obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationIgnore))
}

// mocks are the volumes that stand for claims: those from index first on, and which claim each stands for.
type mocks struct {
	first  int
	claims []int
}

// mockClaims adds a volume for each claim, so that containers can mount them.
func mockClaims(content map[string]any, claims []string) mocks {
	spec, ok := content["spec"].(map[string]any)
	if !ok || len(claims) == 0 {
		return mocks{}
	}
	volumes, ok := spec["volumes"].([]any)
	if !ok && spec["volumes"] != nil {
		return mocks{} // it is wrong, and the API server says so
	}
	m := mocks{first: len(volumes)}
	taken := map[string]bool{}
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		name, _ := volume["name"].(string)
		taken[name] = true
	}
	for i, name := range claims {
		if taken[name] {
			continue
		}
		m.claims = append(m.claims, i)
		volumes = append(volumes, map[string]any{
			"name": name, "persistentVolumeClaim": map[string]any{"claimName": "dry-run"},
		})
	}
	spec["volumes"] = volumes
	return m
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

// dropAlias removes what the API server only repeats for old clients: a template that grows by it looks like one that the
// user changed, in a field that no running pod can change.
func dropAlias(template, content map[string]any) {
	const alias = "serviceAccount"
	had, _ := content["spec"].(map[string]any)
	spec, _ := template["spec"].(map[string]any)
	if _, ok := had[alias]; !ok {
		delete(spec, alias)
	}
}
