package claims

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

// Fit is how a claim compares with its template.
type Fit struct {
	// Alike means that both have the same storage class and access modes. A class that either leaves out is the same.
	Alike bool
	// Compatible means that the claim is alike and asks for as much storage as the template.
	Compatible bool
	// Grown means that the volume has the size that the claim asks for.
	Grown bool
	// Remounts means that the volume has grown, and its file system grows when a node mounts the volume.
	Remounts bool
	// Since is when the volume began to wait for that.
	Since time.Time
}

// Ready reports whether the claim is compatible and its volume has grown.
func (f Fit) Ready() bool { return f.Compatible && f.Grown }

// Complete reports whether nothing but a new mount is left.
func (f Fit) Complete() bool { return f.Compatible && (f.Grown || f.Remounts) }

// Compare compares a claim with its template.
func Compare(claim, template *corev1.PersistentVolumeClaim) Fit {
	has, wants := &claim.Spec, &template.Spec
	f := Fit{Alike: slices.Equal(has.AccessModes, wants.AccessModes)}
	if has.StorageClassName != nil && wants.StorageClassName != nil && *has.StorageClassName != *wants.StorageClassName {
		f.Alike = false
	}
	requested, wanted := has.Resources.Requests[corev1.ResourceStorage], wants.Resources.Requests[corev1.ResourceStorage]
	capacity := claim.Status.Capacity[corev1.ResourceStorage]
	f.Compatible = f.Alike && requested.Cmp(wanted) >= 0
	f.Grown = capacity.Cmp(requested) >= 0
	for _, c := range claim.Status.Conditions {
		if c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue {
			f.Remounts, f.Since = true, c.LastTransitionTime.Time
		}
	}
	return f
}

// Classes returns storage classes by their names; nil for one that does not exist.
type Classes map[string]*storagev1.StorageClass

// Expand returns the write that makes a claim as large as its template, or why that is not possible. workload is the
// one whose events the claim is to cause. API servers forbid every other change of the spec of a claim, as of its
// limits.
func Expand(claim, template *corev1.PersistentVolumeClaim, workload string, classes Classes) (write.Write, error) {
	if !Compare(claim, template).Alike {
		return write.Write{}, fmt.Errorf("claim %s has another storage class or other access modes than its template",
			claim.Name)
	}
	if name := ptr.Deref(claim.Spec.StorageClassName, ""); name != "" {
		class := classes[name]
		if class == nil || !ptr.Deref(class.AllowVolumeExpansion, false) {
			return write.Write{}, fmt.Errorf("claim %s cannot grow: the storage class %q does not allow volume expansion",
				claim.Name, name)
		}
	}
	const path = "/spec/resources/requests/storage"
	requested, wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage],
		template.Spec.Resources.Requests[corev1.ResourceStorage]
	ops := append(write.TestUID(claim), write.Test(path, requested.String()))
	ops = append(ops, write.SetAnnotations(claim, map[string]*string{kruise.ClaimOwnedByStatefulSetKey: &workload})...)
	ops = append(ops, write.Replace(path, wanted.String()))
	return *write.JSON(claim, write.Main, ops...), nil
}

// RemountAfter is how long a node has to grow a file system that is mounted, before the pod is recreated for that.
const RemountAfter = 2 * time.Minute

// NeedsRemount reports whether the volume of a claim grows only when another pod mounts it. A pod that started after
// the volume had grown has mounted the volume. after is when to look again; zero for never.
func (f Fit) NeedsRemount(pod *corev1.Pod, now time.Time) (needs bool, after time.Duration) {
	if !f.Compatible || f.Grown || !f.Remounts || pod.CreationTimestamp.After(f.Since) ||
		lifecycle.ConditionOf(pod, corev1.PodReady) == nil {
		return false, 0
	}
	if rest := f.Since.Add(RemountAfter).Sub(now); rest > 0 {
		return false, rest
	}
	return true, 0
}
