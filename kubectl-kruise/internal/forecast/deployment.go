package forecast

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload/native"
)

// nativeDeployments are Deployments of Kubernetes that ask for updates in place, next to their built-in controllers.
func nativeDeployments() *kind {
	return &kind{
		name:   "Deployment",
		native: true,
		facts: func(o client.Object) facts {
			d, ok := o.(*appsv1.Deployment)
			if !ok {
				return facts{}
			}
			f := facts{
				template: &d.Spec.Template, pods: d.Spec.Selector, minReady: d.Spec.MinReadySeconds,
				update: d.Annotations[simulatedRevisionKey],
			}
			f.rollout(d, native.KindDeployment, ptr.Deref(d.Spec.Replicas, 1), scale.RoundDown)
			return f
		},
		load:       labelPods,
		prepare:    hold,
		reconciler: newNative,
		bounds: func(_ context.Context, s *simulation) (Bounds, error) {
			if d, ok := s.object.(*appsv1.Deployment); ok && s.rollsOut {
				return rollingBounds(d), nil
			}
			return s.wanted.bounds, nil
		},
	}
}

// rollingBounds returns the bounds of the built-in rolling update.
func rollingBounds(d *appsv1.Deployment) Bounds {
	replicas := ptr.Deref(d.Spec.Replicas, 1)
	if recreates(d) {
		return Bounds{Replicas: replicas, MaxUnavailable: replicas}
	}
	rolling := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	b := Bounds{
		Replicas: replicas, MaxSurge: amount(rolling.MaxSurge, "25%", replicas, scale.RoundUp),
		MaxUnavailable: amount(rolling.MaxUnavailable, "25%", replicas, scale.RoundDown),
	}
	if b.MaxSurge == 0 {
		b.MaxUnavailable = max(b.MaxUnavailable, 1)
	}
	b.MinAvailable = max(replicas-b.MaxUnavailable, 0)
	return b
}

// hold pauses a changed Deployment, as admission does.
func hold(live, wanted client.Object) error {
	before, ok := live.(*appsv1.Deployment)
	after, both := wanted.(*appsv1.Deployment)
	if !ok || !both {
		return fmt.Errorf("hold %T: it is no Deployment", wanted)
	}
	if native.Hold(before, after) == nil {
		return nil
	}
	after.Spec.Paused = true
	if _, held := before.Annotations[native.HoldKey]; !held {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, native.HoldKey, strconv.FormatInt(before.Generation, 10))
	}
	return nil
}

func isHeld(d *appsv1.Deployment) bool {
	_, held := d.Annotations[native.HoldKey]
	return held && d.Spec.Paused
}

// labelPods gives each pod of a Deployment the label of its revision, which a pod gets with its first update in place,
// and adds the revisions of the ReplicaSets.
func labelPods(live client.Object, objects []client.Object) ([]client.Object, error) {
	var have []*appsv1.ControllerRevision
	for _, o := range objects {
		if rev, ok := o.(*appsv1.ControllerRevision); ok && metav1.IsControlledBy(rev, live) {
			have = append(have, rev)
		}
	}
	all, labels := slices.Clone(objects), map[types.UID]string{}
	for _, o := range objects {
		set, ok := o.(*appsv1.ReplicaSet)
		if !ok || !metav1.IsControlledBy(set, live) {
			continue
		}
		found, data, err := resolve(live.GetName(), plainTemplate(set), have)
		if err != nil {
			return nil, err
		}
		if labels[set.UID] = revision.Short(found.Name); found.Verdict == revision.Create {
			have = append(have, &appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: live.GetNamespace(), Name: found.Name, UID: types.UID(found.Name),
					OwnerReferences: []metav1.OwnerReference{
						*metav1.NewControllerRef(live, appsv1.SchemeGroupVersion.WithKind("Deployment")),
					},
				},
				Data: runtime.RawExtension{Raw: data}, Revision: found.Number,
			})
			all = append(all, have[len(have)-1])
		}
	}
	for i, o := range all {
		pod, ok := o.(*corev1.Pod)
		owner := metav1.GetControllerOfNoCopy(o)
		if !ok || owner == nil || labels[owner.UID] == "" || pod.Labels[appsv1.ControllerRevisionHashLabelKey] != "" {
			continue
		}
		pod = pod.DeepCopy()
		metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.ControllerRevisionHashLabelKey, labels[owner.UID])
		all[i] = pod
	}
	return all, nil
}

// plainTemplate returns the template of a ReplicaSet as the user wrote it: without the label of the hash, and without
// the mark of a rollout.
func plainTemplate(set *appsv1.ReplicaSet) *corev1.PodTemplateSpec {
	template := set.Spec.Template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	if delete(template.Annotations, native.HoldKey); len(template.Annotations) == 0 {
		template.Annotations = nil
	}
	return template
}
