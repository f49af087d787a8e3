package sidecarset

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/revision"
)

// revise makes the set as it is the newest of its revisions.
func (a *act) revise(ctx context.Context) error {
	data, err := encode(a.set)
	if err != nil {
		return err
	}
	a.revision = a.resolve(data)
	if a.revision.Verdict == revision.Create {
		return a.createRevision(ctx, data)
	}
	return a.keepRevision(ctx)
}

func (a *act) key() types.NamespacedName { return types.NamespacedName{Name: a.set.Name} }

func (a *act) createRevision(ctx context.Context, data []byte) error {
	made := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.options.Namespace, Name: a.revision.Name,
			Labels: maps.Clone(a.set.Labels), Annotations: maps.Clone(a.set.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(a.set, gvk())},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: a.revision.Number,
	}
	metav1.SetMetaDataLabel(&made.ObjectMeta, pub.RevisionHashLabelKey, a.revision.Hash)
	metav1.SetMetaDataLabel(&made.ObjectMeta, v1beta1.SidecarSetNameLabel, a.set.Name)
	if version := a.set.Spec.CustomVersion; version != "" {
		metav1.SetMetaDataLabel(&made.ObjectMeta, v1beta1.SidecarSetCustomVersionLabel, version)
	}
	err := a.client.Create(ctx, made)
	switch {
	case apierrors.IsAlreadyExists(err):
		made, err = a.adopt(ctx, made)
	case err != nil:
		a.revisionWrites.Doubt(a.key(), made, err)
	}
	if err != nil {
		return fmt.Errorf("create revision %s: %w", made.Name, err)
	}
	a.revisionWrites.Created(a.key(), made)
	a.revisions = append(slices.Clone(a.revisions), made)
	return nil
}

// adopt takes the revision that has the name, when it holds the same and nobody else owns it. Else the next pass tries another
// name.
func (a *act) adopt(ctx context.Context, made *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	there := &appsv1.ControllerRevision{}
	if err := a.live().Get(ctx, client.ObjectKeyFromObject(made), there); err != nil {
		return made, err
	}
	owner := metav1.GetControllerOf(there)
	if same(there.Data.Raw, made.Data.Raw) && there.Labels[v1beta1.SidecarSetNameLabel] == a.set.Name && (owner == nil || owner.UID == a.set.UID) {
		return there, nil
	}
	status := a.set.Status
	status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	if err := a.writeStatus(ctx, &status); err != nil {
		return made, err
	}
	return made, fmt.Errorf("its name is taken by another one")
}

// keepRevision makes an older revision the newest, and gives it the custom version that the set has now.
func (a *act) keepRevision(ctx context.Context) error {
	i := slices.IndexFunc(a.revisions, func(rev *appsv1.ControllerRevision) bool { return rev.Name == a.revision.Name })
	change := map[string]any{}
	if a.revision.Verdict == revision.Bump {
		change["revision"] = a.revision.Number
	}
	metadata := map[string]any{"uid": a.revisions[i].UID}
	if version := a.set.Spec.CustomVersion; version != "" && a.revisions[i].Labels[v1beta1.SidecarSetCustomVersionLabel] != version {
		metadata["labels"] = map[string]string{v1beta1.SidecarSetCustomVersionLabel: version}
	}
	if len(change) == 0 && len(metadata) == 1 {
		return nil
	}
	change["metadata"] = metadata
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode revision: %w", err)
	}
	fresh := a.revisions[i].DeepCopy()
	if err := a.client.Patch(ctx, fresh, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("change revision %s: %w", fresh.Name, err)
	}
	a.revisionWrites.Patched(a.key(), fresh)
	a.revisions = slices.Clone(a.revisions)
	a.revisions[i] = fresh
	revision.Sort(a.revisions)
	return nil
}

// trim deletes revisions that are beyond the limit.
func (a *act) trim(ctx context.Context) error {
	_, err := batches.Run(a.surplus(a.revision.Name, a.plan.Revisions), func(old *appsv1.ControllerRevision) error {
		if err := a.client.Delete(ctx, old.DeepCopy(), client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete revision %s: %w", old.Name, err)
		}
		a.revisionWrites.Deleted(a.key(), old)
		return nil
	})
	return err
}
