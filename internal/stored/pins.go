package stored

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// PinnedRevisions reads the revisions among which a SidecarSet finds the one it is pinned to: one by its name, or all
// revisions of the set where it is pinned by a custom version. They may be those of a cache.
func PinnedRevisions(
	ctx context.Context, from client.Reader, namespace string, set *appsv1beta1.SidecarSet,
) ([]*appsv1.ControllerRevision, error) {
	if name := set.Spec.InjectionStrategy.Revision.RevisionName; name != nil {
		if *name == "" || len(path.IsValidPathSegmentName(*name)) > 0 {
			return nil, nil // no object has this name
		}
		found := &appsv1.ControllerRevision{}
		err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: *name}, found)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return []*appsv1.ControllerRevision{found}, err
	}
	list := &appsv1.ControllerRevisionList{}
	err := from.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{appsv1beta1.SidecarSetNameLabel: set.Name})
	return Pointers(list.Items), err
}
