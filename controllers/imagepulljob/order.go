package imagepulljob

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/scale"
)

// order is that in which the workload that made the job updates its pods, so that an image comes first to where it is needed
// first. Of other jobs it is as it was.
func (r *Reconciler) order(ctx context.Context, s *snapshot, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	owner := metav1.GetControllerOfNoCopy(s.job)
	if owner == nil || len(pods) < 2 {
		return pods, nil
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != v1beta1.GroupVersion.Group {
		return pods, nil //nolint:nilerr // such an owner is none of ours
	}
	name := types.NamespacedName{Namespace: s.job.Namespace, Name: owner.Name}
	switch owner.Kind {
	case "CloneSet":
		set, err := workload[v1beta1.CloneSet](ctx, r, owner, name)
		if err != nil || set == nil {
			return pods, err
		}
		return asCloneSet(set, pods, s.now), nil
	case "StatefulSet":
		set, err := workload[v1beta1.StatefulSet](ctx, r, owner, name)
		if err != nil || set == nil {
			return pods, err
		}
		return asStatefulSet(set, pods), nil
	}
	return pods, nil
}

// workload that owns a job; nil where it is gone, or not installed, or cannot be read.
func workload[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, r *Reconciler, owner *metav1.OwnerReference, name types.NamespacedName) (P, error) {
	object, malformed, err := stored.Read[T](ctx, r.objects, v1beta1.GroupVersion.WithKind(owner.Kind), name)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", owner.Kind, name.Name, err)
	case malformed == nil && P(object).GetUID() == owner.UID:
		return object, nil
	}
	return nil, nil
}

// asCloneSet is the order of a plan that may update all at once.
func asCloneSet(set *v1beta1.CloneSet, pods []*corev1.Pod, now time.Time) []*corev1.Pod {
	n := int32(len(pods))
	in := scale.Input{Now: now, UpdateOnly: true, Limits: scale.Limits{Replicas: n, MaxUnavailable: n}}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		in.Priority, in.Scatter = rolling.PriorityStrategy, rolling.ScatterStrategy
	}
	for i, pod := range pods {
		in.Instances = append(in.Instances, scale.Instance{Name: pod.Name, Pods: pods[i : i+1 : i+1]})
	}
	plan, err := scale.Plan(in)
	if err != nil {
		return pods
	}
	rank := map[string]int{}
	for i := range plan.Update {
		rank[plan.Update[i].Name] = i + 1
	}
	// Those that are not updated now, because a hook holds them or an update is under way, are beyond being early.
	return slices.SortedStableFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		// What has no rank comes last.
		return cmp.Compare(uint(rank[a.Name]-1), uint(rank[b.Name]-1))
	})
}

// asStatefulSet is from the last ordinal to the first, unless a strategy says otherwise.
func asStatefulSet(set *v1beta1.StatefulSet, pods []*corev1.Pod) []*corev1.Pod {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(ordinal(b), ordinal(a)) })
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.UnorderedUpdate == nil {
		return pods
	}
	labelsOf := func(pod *corev1.Pod) map[string]string { return pod.Labels }
	// What cannot be read of the strategy selects nothing, as in the update itself.
	_ = scale.Prioritise(pods, labelsOf, rolling.UnorderedUpdate.PriorityStrategy)
	return pods
}

// ordinal of a pod, -1 where its name has none.
func ordinal(pod *corev1.Pod) int {
	n, err := strconv.ParseUint(pod.Name[strings.LastIndexByte(pod.Name, '-')+1:], 10, 31)
	if err != nil {
		return -1
	}
	return int(n)
}
