package forecast

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/note"
)

// facts are what a forecast reads of a workload of any kind.
type facts struct {
	template *corev1.PodTemplateSpec
	// pods selects the pods; claims means that these have claims of their own, and nodes that the kind looks at nodes.
	pods          *metav1.LabelSelector
	claims, nodes bool
	bounds        Bounds
	// minReady is minReadySeconds, and grace that of updates in place.
	minReady, grace int32
	hooks           *kruise.Lifecycle
	// recreates means that the workload asks for pods to be recreated where an update in place were possible.
	recreates bool
	// kept is why pods stay at older revisions, and keptPods how many, of a kind whose reconciler explains nothing.
	kept     note.Note
	keptPods int32
	// ownTemplates means that the revisions of the workload contain more than the template of its pods.
	ownTemplates bool
	// containers of the workload, where these are not those of the template.
	containers []*corev1.Container
	// selector selects the nodes whose pods are updated, and podSelector the pods; nil for all.
	selector, podSelector labels.Selector
	// current and update are the names of revisions in the status.
	current, update string
}

// kind is a kind of workloads that a forecast is made for.
type kind struct {
	name string
	// native means that a built-in controller creates the pods.
	native bool
	// place is what a pod has in common with the one that replaces it; nil where pods are alike.
	place func(*corev1.Pod) string
	// owns reports whether a pod belongs to a workload; nil for the pods that the workload controls.
	owns func(workload types.NamespacedName, pod *corev1.Pod) bool
	// revision of a pod; nil for the one in its label.
	revision func(workload types.NamespacedName, pod *corev1.Pod) string
	// load completes the objects of a snapshot of a live workload; nil for nothing.
	load func(live client.Object, objects []client.Object) ([]client.Object, error)
	// prepare completes a wanted workload as admission does; nil for nothing.
	prepare func(live, wanted client.Object) error
	// facts of a workload with its defaults.
	facts func(client.Object) facts
	// reconciler over the objects of a simulation.
	reconciler func(context.Context, *simulation) (reconcile.Reconciler, error)
	// bounds of a workload that other workloads make up; nil for those of the facts.
	bounds func(context.Context, *simulation) (Bounds, error)
	// subsets of a workload before and after a change; nil for none.
	subsets func(before, after client.Object) []Subset
}

// UnsupportedError reports a kind that no forecast is made for.
type UnsupportedError struct{ Kind, Why string }

// Error implements error.
func (e *UnsupportedError) Error() string { return fmt.Sprintf("forecast %s: %s", e.Kind, e.Why) }

// BoundsOf returns what a rollout of a workload keeps to, as its status has it now: nothing for other kinds.
func BoundsOf(o client.Object) Bounds {
	k, err := kindOf(o)
	if err != nil {
		return Bounds{}
	}
	return k.facts(o).bounds
}

// kindOf returns the kind of a workload.
func kindOf(o client.Object) (*kind, error) {
	switch o.(type) {
	case *v1beta1.CloneSet:
		return cloneSets(), nil
	case *v1beta1.StatefulSet:
		return statefulSets(), nil
	case *v1beta1.DaemonSet:
		return daemonSets(), nil
	case *v1beta1.SidecarSet:
		return sidecarSets(), nil
	case *v1beta1.UnitedDeployment:
		return unitedDeployments(), nil
	case *appsv1.StatefulSet:
		return nativeStatefulSets(), checkNative(o)
	case *appsv1.DaemonSet:
		return nativeDaemonSets(), checkNative(o)
	case *appsv1.Deployment:
		return nativeDeployments(), checkNative(o)
	}
	return nil, &UnsupportedError{Kind: fmt.Sprintf("%T", o), Why: "it has no pods that it updates"}
}

// newScheme has the kinds that reconcilers of workloads read.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1beta1.AddToScheme, policyv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("add kinds to scheme: %w", err)
		}
	}
	return scheme, nil
}

// index adds the indexes that reconcilers of workloads list by.
func index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
		if err := owned.Index(ctx, indexer, o); err != nil {
			return fmt.Errorf("index %T: %w", o, err)
		}
	}
	return nil
}
