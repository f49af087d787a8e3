package workloadspread

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	spreads "github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

const (
	// mostDryRuns of one review.
	mostDryRuns = 20
	// patchTimeout of all calls of one review is less than the 10 seconds that API servers wait.
	patchTimeout = 8 * time.Second
)

// API is what the webhook asks of the API server; client.Client has it.
type API interface {
	kinds.API
	RESTMapper() meta.RESTMapper
}

// checkPatches applies each patch that is new or has changed to the template of the target, and has the API server
// validate the result. A patch that was not checked is a warning.
func checkPatches(ctx context.Context, api API, c change) (found kinds.Finding) {
	var template map[string]any
	var claims []string
	checked := 0
	for i := range c.Now.Spec.Subsets {
		s := &c.Now.Spec.Subsets[i]
		if len(s.Patch.Raw) == 0 || hadPatch(c.Before, s) {
			continue
		}
		if template == nil {
			var err error
			if template, claims, err = templateOf(ctx, api, c.Now); err != nil {
				return unchecked(nil, err)
			}
			if template == nil {
				return found // the target may come later
			}
			claims = append(claims, podtemplate.Unknown(template, claims)...) // the template was admitted without these
		}
		at := field.NewPath("spec", "subsets").Index(i).Child("patch")
		patched, err := apply(template, s)
		if err != nil {
			text := "must be a strategic merge patch for the pods of the target: " + err.Error()
			found.Faults = append(found.Faults, field.Invalid(at, string(s.Patch.Raw), text))
			continue
		}
		if checked++; checked > mostDryRuns {
			continue
		}
		verdict, err := podtemplate.Check(ctx, api, podtemplate.Template{
			Namespace: c.Now.Namespace, Content: patched, Path: at, Claims: claims, ClaimsPath: at, Timeout: patchTimeout,
		})
		if err != nil {
			return unchecked(found.Faults, err)
		}
		found.Faults = append(found.Faults, verdict.Faults...)
	}
	return found
}

// unchecked warns of patches that were not checked, unless others have faults.
func unchecked(faults field.ErrorList, err error) kinds.Finding {
	if len(faults) > 0 {
		return kinds.Finding{Faults: faults}
	}
	return kinds.Finding{Warnings: []string{fmt.Sprintf("the patches of subsets were not checked: %v", err)}}
}

// hadPatch reports whether the stored object has the same subset with the same patch, for the same target.
func hadPatch(before *appsv1beta1.WorkloadSpread, s *appsv1beta1.WorkloadSpreadSubset) bool {
	if before == nil {
		return false
	}
	for i := range before.Spec.Subsets {
		if was := &before.Spec.Subsets[i]; was.Name == s.Name {
			return bytes.Equal(was.Patch.Raw, s.Patch.Raw)
		}
	}
	return false
}

// apply returns the template as the pods of a subset have it.
func apply(template map[string]any, s *appsv1beta1.WorkloadSpreadSubset) (map[string]any, error) {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, pod); err != nil {
		return nil, fmt.Errorf("decode the pod template of the target: %w", err)
	}
	next, err := subset.Inject(pod, s, subset.Match{})
	if err != nil {
		return nil, err
	}
	patched := &corev1.PodTemplateSpec{ObjectMeta: next.ObjectMeta, Spec: next.Spec}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(patched)
	if err != nil {
		return nil, fmt.Errorf("encode the patched pod: %w", err)
	}
	return content, nil
}

// templateOf reads the pod template of the target, and the names of its claim templates; nil where the target does not
// exist, or has no template at the place where the usual kinds have theirs.
func templateOf(
	ctx context.Context, api API, ws *appsv1beta1.WorkloadSpread,
) (template map[string]any, claims []string, err error) {
	kind := spreads.KindOf(ws)
	if !spreads.BuiltIn(kind) {
		return nil, nil, nil
	}
	mapping, err := api.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("look up %s: %w", kind, err)
	}
	target := &unstructured.Unstructured{}
	target.SetGroupVersionKind(mapping.GroupVersionKind)
	err = api.Get(ctx, types.NamespacedName{Namespace: ws.Namespace, Name: ws.Spec.TargetReference.Name}, target)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s %s: %w", kind.Kind, ws.Spec.TargetReference.Name, err)
	}
	template, _, err = unstructured.NestedMap(target.Object, "spec", "template")
	if err != nil {
		return nil, nil, nil //nolint:nilerr // it is the target's fault
	}
	list, _, _ := unstructured.NestedSlice(target.Object, "spec", "volumeClaimTemplates")
	for _, c := range list {
		claim, _ := c.(map[string]any)
		if name, _, _ := unstructured.NestedString(claim, "metadata", "name"); name != "" {
			claims = append(claims, name)
		}
	}
	return template, claims, nil
}
