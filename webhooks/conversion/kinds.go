package conversion

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1alpha1 "github.com/kruisekit/kruisekit/api/policy/v1alpha1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
)

// kind says how the objects of a kind are converted.
type kind struct {
	// up converts from v1alpha1 to v1beta1, and down back.
	up, down func(raw []byte, as metav1.TypeMeta) ([]byte, error)
	// opaque are paths whose values are handed over as they are.
	opaque []string
}

// old is a kind in v1alpha1.
type old[O, H any] interface {
	*O
	runtime.Object
	ConvertTo(*H) error
	ConvertFrom(*H) error
}

// hub is a kind in v1beta1.
type hub[H any] interface {
	*H
	runtime.Object
}

// between gives the conversions of a kind between v1alpha1 and v1beta1.
func between[O, H any, PO old[O, H], PH hub[H]](opaque ...string) kind {
	up := func(raw []byte, as metav1.TypeMeta) ([]byte, error) {
		src, dst := PO(new(O)), PH(new(H))
		return through(raw, src, func() (runtime.Object, error) { return dst, src.ConvertTo(dst) }, as)
	}
	down := func(raw []byte, as metav1.TypeMeta) ([]byte, error) {
		src, dst := PH(new(H)), PO(new(O))
		return through(raw, src, func() (runtime.Object, error) { return dst, dst.ConvertFrom(src) }, as)
	}
	return kind{up: up, down: down, opaque: opaque}
}

// through decodes raw into src and encodes what convert makes of it.
func through(
	raw []byte, src runtime.Object, convert func() (runtime.Object, error), as metav1.TypeMeta,
) ([]byte, error) {
	if err := json.Unmarshal(raw, src); err != nil {
		return nil, fmt.Errorf("decode %s: %w", as.Kind, err)
	}
	dst, err := convert()
	if err != nil {
		return nil, err
	}
	dst.GetObjectKind().SetGroupVersionKind(as.GroupVersionKind())
	data, err := json.Marshal(dst)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", as.Kind, err)
	}
	return data, nil
}

// kinds are all that have two versions, with the paths that their schemas leave open.
func kinds() map[schema.GroupKind]kind {
	apps := func(name string) schema.GroupKind {
		return schema.GroupKind{Group: appsv1beta1.GroupVersion.Group, Kind: name}
	}
	policy := func(name string) schema.GroupKind {
		return schema.GroupKind{Group: policyv1beta1.GroupVersion.Group, Kind: name}
	}
	return map[schema.GroupKind]kind{
		apps("AdvancedCronJob"): between[appsv1alpha1.AdvancedCronJob, appsv1beta1.AdvancedCronJob](
			"spec.template.jobTemplate", "spec.template.broadcastJobTemplate.spec.template"),
		apps("BroadcastJob"): between[appsv1alpha1.BroadcastJob, appsv1beta1.BroadcastJob]("spec.template"),
		apps("CloneSet"): between[appsv1alpha1.CloneSet, appsv1beta1.CloneSet]("spec.template",
			"spec.volumeClaimTemplates"),
		apps("ContainerRecreateRequest"): between[appsv1alpha1.ContainerRecreateRequest,
			appsv1beta1.ContainerRecreateRequest](),
		apps("DaemonSet"):          between[appsv1alpha1.DaemonSet, appsv1beta1.DaemonSet]("spec.template"),
		apps("ImageListPullJob"):   between[appsv1alpha1.ImageListPullJob, appsv1beta1.ImageListPullJob](),
		apps("ImagePullJob"):       between[appsv1alpha1.ImagePullJob, appsv1beta1.ImagePullJob](),
		apps("NodeImage"):          between[appsv1alpha1.NodeImage, appsv1beta1.NodeImage](),
		apps("PersistentPodState"): between[appsv1alpha1.PersistentPodState, appsv1beta1.PersistentPodState](),
		apps("ResourceDistribution"): between[appsv1alpha1.ResourceDistribution,
			appsv1beta1.ResourceDistribution]("spec.resource"),
		apps("SidecarSet"): between[appsv1alpha1.SidecarSet, appsv1beta1.SidecarSet](
			"spec.containers", "spec.initContainers", "spec.volumes"),
		apps("StatefulSet"): between[appsv1alpha1.StatefulSet, appsv1beta1.StatefulSet]("spec.template",
			"spec.volumeClaimTemplates"),
		apps("UnitedDeployment"): between[appsv1alpha1.UnitedDeployment, appsv1beta1.UnitedDeployment](
			"spec.template.statefulSetTemplate", "spec.template.deploymentTemplate",
			"spec.template.advancedStatefulSetTemplate.metadata", "spec.template.advancedStatefulSetTemplate.spec.template",
			"spec.template.advancedStatefulSetTemplate.spec.volumeClaimTemplates",
			"spec.template.cloneSetTemplate.spec.template", "spec.template.cloneSetTemplate.spec.volumeClaimTemplates"),
		apps("WorkloadSpread"): between[appsv1alpha1.WorkloadSpread, appsv1beta1.WorkloadSpread](),

		policy("PodUnavailableBudget"): between[policyv1alpha1.PodUnavailableBudget, policyv1beta1.PodUnavailableBudget](),
	}
}
