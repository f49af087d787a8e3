package forecast

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// defaulted is a workload with defaults.
type defaulted interface {
	client.Object
	Default()
}

// Decode returns a workload of either version as Of takes it: in the version that reconcilers read, with its defaults.
// An *UnsupportedError is for a kind that no forecast is made for.
func Decode(o *unstructured.Unstructured) (client.Object, error) {
	var object defaulted
	var err error
	switch {
	case isNative(o, kinds.StatefulSet):
		return readNative[appsv1.StatefulSet](o)
	case isNative(o, kinds.DaemonSet):
		return readNative[appsv1.DaemonSet](o)
	case isNative(o, kinds.Deployment):
		return readNative[appsv1.Deployment](o)
	case kinds.Is(o, kinds.CloneSet):
		object, err = kinds.ReadCloneSet(o)
	case kinds.Is(o, kinds.StatefulSet):
		object, err = kinds.ReadStatefulSet(o)
	case kinds.Is(o, kinds.DaemonSet):
		object, err = kinds.ReadDaemonSet(o)
	case kinds.Is(o, kinds.UnitedDeployment):
		object, err = kinds.ReadUnitedDeployment(o)
	case kinds.Is(o, kinds.SidecarSet):
		object, err = kinds.ReadSidecarSet(o)
	default:
		return nil, &UnsupportedError{Kind: o.GetKind(), Why: whyUnsupported(o)}
	}
	if err != nil {
		return nil, err
	}
	object.Default()
	return object, nil
}

func isNative(o *unstructured.Unstructured, kind string) bool {
	return o.GroupVersionKind() == appsv1.SchemeGroupVersion.WithKind(kind)
}

// readNative reads a set of Kubernetes that asks for updates in place.
func readNative[T any, P interface {
	*T
	client.Object
}](o *unstructured.Unstructured) (client.Object, error) {
	set, err := kinds.Read[T](o)
	if err != nil {
		return nil, err
	}
	return P(set), checkNative(P(set))
}

// whyUnsupported explains why no forecast is made for a kind.
func whyUnsupported(o *unstructured.Unstructured) string {
	kind := o.GroupVersionKind().GroupKind()
	switch {
	case kind.Group == kinds.Apps && (kind.Kind == kinds.BroadcastJob || kind.Kind == kinds.AdvancedCronJob):
		return "a change of a job has no effect on pods that exist"
	case kind.Group == kinds.Apps, kind.Group == kinds.Policy:
		return "it updates no pods"
	}
	return "it is none of the workloads of apps.kruise.io"
}

// Containers returns the containers of the pods of a workload, or of a SidecarSet, to be changed.
func Containers(o client.Object) []*corev1.Container {
	k, err := kindOf(o)
	if err != nil {
		return nil
	}
	f := k.facts(o)
	all := f.containers
	for _, list := range [][]corev1.Container{f.template.Spec.InitContainers, f.template.Spec.Containers} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}
