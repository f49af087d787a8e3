package cloneset

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// revise makes the template of the set the newest revision.
func (a *act) revise(ctx context.Context) error {
	r := &a.plan.revision
	if a.set.DeletionTimestamp != nil {
		return nil
	}
	switch r.Verdict {
	case revision.Create:
		return a.createRevision(ctx)
	case revision.Bump:
		return a.bumpRevision(ctx)
	}
	return nil
}

func (a *act) createRevision(ctx context.Context) error {
	r := &a.plan.revision
	hash, err := claimsHash(a.set.Spec.VolumeClaimTemplates)
	if err != nil {
		return err
	}
	made := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.set.Namespace, Name: r.Name,
			Labels: maps.Clone(a.set.Spec.Template.Labels), Annotations: maps.Clone(a.set.Annotations),
			OwnerReferences: []metav1.OwnerReference{controllerRef(a.set)},
		},
		Data: runtime.RawExtension{Raw: a.plan.data}, Revision: r.Number,
	}
	metav1.SetMetaDataLabel(&made.ObjectMeta, pub.RevisionHashLabelKey, r.Hash)
	metav1.SetMetaDataAnnotation(&made.ObjectMeta, pub.CloneSetVolumeClaimTemplateHashKey, hash)
	if err = a.client.Create(ctx, made); apierrors.IsAlreadyExists(err) {
		made, err = a.adopt(ctx, made)
	} else if err != nil {
		a.revisionWrites.Doubt(a.key(), made, err)
	}
	if err != nil {
		return fmt.Errorf("create revision %s: %w", r.Name, err)
	}
	a.revisionWrites.Created(a.key(), made)
	a.revisions = append(a.revisions, made)
	return nil
}

// adopt takes the revision that has the name, when it holds the template and nobody else owns it. Else the next pass tries
// another name.
func (a *act) adopt(ctx context.Context, made *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	there := &appsv1.ControllerRevision{}
	if err := a.live().Get(ctx, client.ObjectKeyFromObject(made), there); err != nil {
		return made, err
	}
	if isOwned(a.set, there) {
		return there, nil
	}
	if metav1.GetControllerOf(there) != nil || !revision.SameData(there.Data.Raw, made.Data.Raw) {
		status := a.set.Status.DeepCopy()
		status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
		if err := a.writeStatus(ctx, status); err != nil {
			return made, err
		}
		return made, fmt.Errorf("its name is taken by another template")
	}
	owners, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": there.UID, "ownerReferences": []metav1.OwnerReference{controllerRef(a.set)},
	}})
	if err != nil {
		return made, fmt.Errorf("encode owner: %w", err)
	}
	err = a.client.Patch(ctx, there, client.RawPatch(types.StrategicMergePatchType, owners))
	return there, err
}

// bumpRevision makes an older revision the newest, and tells with which claim templates it is used now.
func (a *act) bumpRevision(ctx context.Context) error {
	r := &a.plan.revision
	hash, err := claimsHash(a.set.Spec.VolumeClaimTemplates)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.Update.UID, "annotations": map[string]string{pub.CloneSetVolumeClaimTemplateHashKey: hash}},
		"revision": r.Number,
	})
	if err != nil {
		return fmt.Errorf("encode revision: %w", err)
	}
	fresh := r.Update.DeepCopy()
	if err := a.client.Patch(ctx, fresh, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("raise revision %s: %w", r.Name, err)
	}
	a.revisionWrites.Patched(a.key(), fresh)
	for i, rev := range a.revisions {
		if rev.UID == fresh.UID {
			a.revisions[i] = fresh
		}
	}
	return nil
}

// trim deletes revisions that nobody runs and that are beyond the limit, and names of pods to delete that are gone.
func (a *act) trim(ctx context.Context) error {
	live := []string{a.plan.current, a.plan.update}
	for _, pod := range a.pods {
		live = append(live, pod.Labels[pub.PodRevisionLabelKey])
	}
	slices.Sort(live)
	_, err := batches.Run(revision.Trim(a.revisions, slices.Compact(live), *a.set.Spec.RevisionHistoryLimit), func(old *appsv1.ControllerRevision) error {
		if err := a.client.Delete(ctx, old.DeepCopy(), client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete revision %s: %w", old.Name, err)
		}
		a.revisionWrites.Deleted(a.key(), old)
		return nil
	})
	if err != nil {
		return err
	}
	return a.trimNames(ctx)
}

// trimNames takes the names of pods that are gone off spec.scaleStrategy.podsToDelete.
func (a *act) trimNames(ctx context.Context) error {
	named := a.set.Spec.ScaleStrategy.PodsToDelete
	if len(named) == 0 {
		return nil
	}
	there := map[string]bool{}
	for _, pod := range a.pods {
		there[pod.Name] = true
	}
	kept := slices.DeleteFunc(slices.Clone(named), func(name string) bool { return !there[name] })
	if len(kept) == len(named) {
		return nil
	}
	path := "/spec/scaleStrategy/podsToDelete"
	patch, err := write.Encode([]write.Op{
		write.Test(path, named), // nobody has changed the list meanwhile
		write.Replace(path, kept),
	})
	if err != nil {
		return err
	}
	if err := a.client.Patch(ctx, a.untyped(), client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("trim spec.scaleStrategy.podsToDelete: %w", client.IgnoreNotFound(err))
	}
	return nil
}

// claimTemplate is a claim as the type library of the reference prints it: with the zero values that later ones leave out.
type claimTemplate struct {
	Metadata struct {
		Name              string       `json:"name"`
		CreationTimestamp *metav1.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec   corev1.PersistentVolumeClaimSpec `json:"spec"`
	Status struct{}                         `json:"status"`
}

// claimsHash is the hash of claim templates as the reference writes it; empty without any.
func claimsHash(templates []corev1.PersistentVolumeClaim) (string, error) {
	if len(templates) == 0 {
		return "", nil
	}
	reduced := make([]claimTemplate, len(templates))
	for i := range templates {
		reduced[i].Metadata.Name, reduced[i].Spec = templates[i].Name, templates[i].Spec
	}
	slices.SortStableFunc(reduced, func(a, b claimTemplate) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	n, err := revision.Fingerprint(reduced)
	return strconv.FormatUint(uint64(n), 10), err
}
