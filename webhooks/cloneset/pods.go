package cloneset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// change is what is done to a CloneSet, under review.
type change = kinds.Change[*appsv1beta1.CloneSet]

// maxReads is how many pods are read one by one; if more are named, all pods of the set are read at once.
const maxReads = 16

// podFaults checks pods that are newly named for deletion: each must exist, belong to the set, and not be on its way
// out already. Names that the stored object has are ignored: their pods go while the object stays.
//
// A set that is new has no pods. In v1alpha1 that refuses all names, as it always has; in v1beta1 names are let pass,
// as they always were, and mean nothing.
func podFaults(ctx context.Context, api kinds.API, r change) (found kinds.Finding, err error) {
	at := field.NewPath("spec", "scaleStrategy", "podsToDelete")
	names := r.Now.Spec.ScaleStrategy.PodsToDelete
	if !r.IsUpdate {
		for _, name := range names {
			if r.Old {
				found.Faults = append(found.Faults, field.Invalid(at, name, "a new CloneSet has no pods"))
			}
		}
		return found, nil
	}
	known := sets.New(r.Before.Spec.ScaleStrategy.PodsToDelete...)
	var added []string
	for _, name := range names {
		if known.Has(name) {
			continue
		}
		known.Insert(name)
		if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
			found.Faults = append(found.Faults, field.Invalid(at, name, "is no name of a pod"))
			continue
		}
		added = append(added, name)
	}
	pods, err := podsNamed(ctx, api, r, added)
	if err != nil {
		return found, err
	}
	for _, name := range added {
		if wrong := unselectable(pods[name], r); wrong != "" {
			found.Faults = append(found.Faults, field.Invalid(at, name, wrong))
		}
	}
	return found, nil
}

// unselectable returns why a pod cannot be named; empty if it can.
func unselectable(pod *metav1.PartialObjectMetadata, r change) string {
	switch {
	case pod == nil:
		return "there is no such pod in this CloneSet"
	case pod.DeletionTimestamp != nil:
		return "this pod is being deleted already"
	case !metav1.IsControlledBy(pod, r.Now):
		return "this pod is not controlled by this CloneSet"
	}
	return ""
}

// podsNamed reads pods by their names; those that do not exist are left out.
func podsNamed(
	ctx context.Context, api kinds.API, r change, names []string,
) (map[string]*metav1.PartialObjectMetadata, error) {
	if len(names) > maxReads {
		return allPods(ctx, api, r)
	}
	found := map[string]*metav1.PartialObjectMetadata{}
	for _, name := range names {
		pod := &metav1.PartialObjectMetadata{}
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		err := api.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read pod %s, which podsToDelete names: %w", name, err)
		default:
			found[name] = pod
		}
	}
	return found, nil
}

// allPods reads the pods that the selector matches.
func allPods(ctx context.Context, api kinds.API, r change) (map[string]*metav1.PartialObjectMetadata, error) {
	selector, err := metav1.LabelSelectorAsSelector(r.Before.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read the pods that podsToDelete names: %w", err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err = api.List(ctx, list, client.InNamespace(r.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("read the pods that podsToDelete names: %w", err)
	}
	found := make(map[string]*metav1.PartialObjectMetadata, len(list.Items))
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found, nil
}
