package sidecarset

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar"
	"github.com/kruisekit/kruisekit/sidecar/overlap"
)

// conflicts are faults with other sets. Those that the stored set has already are borne. A set whose spec stays as it is has
// none that are new.
func (w *Webhooks) conflicts(ctx context.Context, set, before *appsv1beta1.SidecarSet) (faults, borne field.ErrorList, err error) {
	if before != nil && equality.Semantic.DeepEqual(before.Spec, set.Spec) && baseOf(before) == baseOf(set) {
		return nil, nil, nil
	}
	others, err := w.others(ctx, set.Name)
	if err != nil {
		return nil, nil, err
	}
	if others, err = w.confirmed(ctx, set, others); err != nil {
		return nil, nil, err
	}
	var had field.ErrorList
	if before != nil {
		had = CheckConflicts(before, others)
	}
	faults, borne = review.Added(CheckConflicts(set, others), had)
	return faults, borne, nil
}

// confirmed are those of the others that a set is in conflict with, as they are now: a set that has just been deleted or
// changed is in the way of nobody.
func (w *Webhooks) confirmed(ctx context.Context, set *appsv1beta1.SidecarSet, others []*appsv1beta1.SidecarSet) ([]*appsv1beta1.SidecarSet, error) {
	var all []*appsv1beta1.SidecarSet
	for _, other := range others {
		if len(CheckConflicts(set, []*appsv1beta1.SidecarSet{other})) == 0 {
			continue
		}
		raw := stored.Untyped(appsv1beta1.GroupVersion.WithKind("SidecarSet"))
		err := w.api.Get(ctx, client.ObjectKey{Name: other.Name}, raw)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read SidecarSet %s, which is in conflict: %w", other.Name, err)
		}
		now, malformed, err := stored.Decode[appsv1beta1.SidecarSet](raw)
		if err == nil && malformed == nil && now.DeletionTimestamp == nil {
			all = append(all, now)
		}
	}
	return all, nil
}

// others are all sets but the one, by name. A set that cannot be read is left out: nobody knows what it has.
func (w *Webhooks) others(ctx context.Context, name string) ([]*appsv1beta1.SidecarSet, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(appsv1beta1.GroupVersion.WithKind("SidecarSetList"))
	// They are only read. A reader that is no cache does not mind the option.
	if err := w.sets.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list other sets: %w", err)
	}
	var all []*appsv1beta1.SidecarSet
	for i := range list.Items {
		set, malformed, err := stored.Decode[appsv1beta1.SidecarSet](&list.Items[i])
		if err == nil && malformed == nil && set.Name != name {
			all = append(all, set)
		}
	}
	slices.SortFunc(all, func(a, b *appsv1beta1.SidecarSet) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// CheckConflicts tells what a set cannot have because another one has it already, and both can meet in a pod: names of
// containers, volumes of one name that differ, and annotations that are overwritten. A canary and its base never meet.
func CheckConflicts(set *appsv1beta1.SidecarSet, others []*appsv1beta1.SidecarSet) field.ErrorList {
	var faults field.ErrorList
	for _, other := range others {
		if other.Name == set.Name || baseOf(set) == other.Name || baseOf(other) == set.Name {
			continue
		}
		clashes := append(nameClashes(set, other), volumeClashes(set, other)...)
		clashes = append(clashes, annotationClashes(set, other)...)
		if len(clashes) == 0 {
			continue
		}
		// Last, for few sets have anything in common.
		where, meet := meeting(set, other)
		if !meet {
			continue
		}
		for _, c := range clashes {
			faults = append(faults, field.Invalid(c.at, c.what, fmt.Sprintf("SidecarSet %s has it too, and both select %s", other.Name, where)))
		}
	}
	return faults
}

// meeting tells of a pod that both sets select, if there can be one.
func meeting(a, b *appsv1beta1.SidecarSet) (where string, meet bool) {
	if isEmpty(a.Spec.Selector) || isEmpty(b.Spec.Selector) {
		return "", false
	}
	pod, meet, err := overlap.Labels(a.Spec.Selector, b.Spec.Selector)
	if err != nil || !meet {
		return "", false // what is broken is told elsewhere
	}
	namespace, meet, err := overlap.Namespace(a.Spec.NamespaceSelector, b.Spec.NamespaceSelector)
	if err != nil || !meet {
		return "", false
	}
	where = "pods without labels"
	if len(pod) > 0 {
		where = "pods with " + labels.Set(pod).String()
	}
	if len(namespace) > 0 {
		where += " in namespaces with " + labels.Set(namespace).String()
	}
	return where, true
}

// isEmpty says that a selector of pods selects none.
func isEmpty(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// clash is something that two sets have.
type clash struct {
	at   *field.Path
	what string
}

// nameClashes are of names in pods, be it of containers or of init containers, and of names that both sets have written in the
// same list: what pods record of hot upgrades goes by these.
func nameClashes(set, other *appsv1beta1.SidecarSet) []clash {
	spec := field.NewPath("spec")
	inPods, written := map[string]bool{}, map[string]bool{}
	key := func(name string, init bool) string { return fmt.Sprintf("%v/%s", init, name) }
	each(&other.Spec, spec, func(c *appsv1beta1.SidecarContainer, init bool, _ *field.Path) {
		written[key(c.Name, init)] = true
		for _, name := range sidecar.ContainerNames(c, init) {
			inPods[name] = true
		}
	})
	var clashes []clash
	each(&set.Spec, spec, func(c *appsv1beta1.SidecarContainer, init bool, at *field.Path) {
		if written[key(c.Name, init)] || slices.ContainsFunc(sidecar.ContainerNames(c, init), func(name string) bool { return inPods[name] }) {
			clashes = append(clashes, clash{at: at.Child("name"), what: c.Name})
		}
	})
	return clashes
}

func volumeClashes(set, other *appsv1beta1.SidecarSet) []clash {
	var clashes []clash
	for i := range set.Spec.Volumes {
		v := &set.Spec.Volumes[i]
		if slices.ContainsFunc(other.Spec.Volumes, func(o corev1.Volume) bool {
			return o.Name == v.Name && !equality.Semantic.DeepEqual(o, *v)
		}) {
			clashes = append(clashes, clash{at: field.NewPath("spec", "volumes").Index(i), what: v.Name})
		}
	}
	return clashes
}

// annotationClashes are of keys that both sets write over what is there, the one or the other without looking.
func annotationClashes(set, other *appsv1beta1.SidecarSet) []clash {
	const overwrite = appsv1beta1.SidecarSetOverwritePatchPolicy
	theirs := map[string]appsv1beta1.SidecarSetPatchPolicyType{}
	for _, p := range other.Spec.PatchPodMetadata {
		for key := range p.Annotations {
			theirs[key] = p.PatchPolicy
		}
	}
	var clashes []clash
	for i, p := range set.Spec.PatchPodMetadata {
		for _, key := range sortedKeys(p.Annotations) {
			policy, both := theirs[key]
			if both && !isRetain(p.PatchPolicy) && !isRetain(policy) && (p.PatchPolicy == overwrite || policy == overwrite) {
				at := field.NewPath("spec", "patchPodMetadata").Index(i).Child("annotations").Key(key)
				clashes = append(clashes, clash{at: at, what: key})
			}
		}
	}
	return clashes
}

func isRetain(p appsv1beta1.SidecarSetPatchPolicyType) bool {
	return p == "" || p == appsv1beta1.SidecarSetRetainPatchPolicy
}
