package sidecarset

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// allowList is the list in kruise-configuration of the annotations that sets may write on pods.
type allowList struct {
	Rules []allowRule `json:"rules"`
}

// allowRule is for the sets that the selector selects; without a selector for all.
type allowRule struct {
	Selector *metav1.LabelSelector `json:"selector"`
	// Exprs are regular expressions, of which one must be found in the key.
	Exprs []string `json:"allowedAnnotationKeyExprs"`
}

// metadataFaults returns the annotations that the cluster does not allow the set to write on pods, if these or the
// labels of the set changed.
func (w *webhooks) metadataFaults(ctx context.Context, c change) (field.ErrorList, error) {
	set, before := c.Now, c.Before
	if len(set.Spec.PatchPodMetadata) == 0 ||
		c.IsUpdate && reflect.DeepEqual(before.Spec.PatchPodMetadata, set.Spec.PatchPodMetadata) &&
			reflect.DeepEqual(before.Labels, set.Labels) {
		return nil, nil
	}
	config := &corev1.ConfigMap{}
	err := w.api.Get(ctx, client.ObjectKey{Namespace: w.options.Namespace, Name: kruise.ConfigurationName}, config)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", w.options.Namespace, kruise.ConfigurationName, err)
	}
	fault := func(at *field.Path, why string) field.ErrorList {
		return field.ErrorList{
			field.Required(at, fmt.Sprintf("%s (key %s of ConfigMap %s/%s)",
				why, kruise.SidecarSetPatchPodMetadataWhiteListKey, w.options.Namespace, kruise.ConfigurationName)),
		}
	}
	at := field.NewPath("spec", "patchPodMetadata")
	allowed, err := allowedKeys(config.Data[kruise.SidecarSetPatchPodMetadataWhiteListKey], set.Labels)
	switch {
	case err != nil:
		//nolint:nilerr // the fault contains the error
		return fault(at, "a list of allowed annotations that can be read: "+err.Error()), nil
	case len(allowed) == 0 && w.options.AnyPodMetadata:
		return nil, nil
	case len(allowed) == 0:
		return fault(at, "a rule of the cluster that allows this set to write annotations"), nil
	}
	return notAllowed(set.Spec.PatchPodMetadata, allowed, func(key string) field.ErrorList {
		return fault(at, fmt.Sprintf("a rule of the cluster that allows annotation %s", key))
	}), nil
}

// notAllowed returns a fault for each key that matches none of the expressions.
func notAllowed(
	patches []appsv1beta1.SidecarSetPatchPodMetadata, allowed []*regexp.Regexp, fault func(key string) field.ErrorList,
) field.ErrorList {
	var faults field.ErrorList
	for i := range patches {
		for _, key := range slices.Sorted(maps.Keys(patches[i].Annotations)) {
			if !slices.ContainsFunc(allowed, func(e *regexp.Regexp) bool { return e.MatchString(key) }) {
				faults = append(faults, fault(key)...)
			}
		}
	}
	return faults
}

// allowedKeys returns the expressions of the rules for a set with these labels. Every rule must be valid, also those
// for other sets.
func allowedKeys(text string, of map[string]string) ([]*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	var list allowList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	var allowed []*regexp.Regexp
	for i, rule := range list.Rules {
		applies := labels.Everything()
		if rule.Selector != nil {
			var err error
			if applies, err = metav1.LabelSelectorAsSelector(rule.Selector); err != nil {
				return nil, fmt.Errorf("rules[%d].selector: %w", i, err)
			}
		}
		for j, expr := range rule.Exprs {
			e, err := regexp.Compile(expr)
			if err != nil {
				return nil, fmt.Errorf("rules[%d].allowedAnnotationKeyExprs[%d]: %w", i, j, err)
			}
			if applies.Matches(labels.Set(of)) {
				allowed = append(allowed, e)
			}
		}
	}
	return allowed, nil
}
